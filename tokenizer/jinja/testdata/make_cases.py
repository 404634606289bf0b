"""Writes cases.json: templates, the variables given to them, and what Jinja2 makes of them.

Run with Python 3.11 or later and Jinja2 3.1.6. The environment is set up as transformers sets it up for chat templates.
A case is [template, "ok", text] or [template, "error", exception class, message].
"""
import json
import os
from datetime import datetime

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(lineno)

    def _support(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


NOW = datetime(2024, 3, 7, 15, 4, 5, 678901)

env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = lambda format: NOW.strftime(format)


def result(template, variables):
    try:
        return ["ok", env.from_string(template).render(**variables)]
    except Exception as e:
        return ["error", type(e).__name__, str(e)]



VARIABLES = {
    "s": "Hello, World", "u": "Zürich 東京 😀", "empty": "", "n": 7, "f": 2.5, "neg": -3, "big": 12345678901234567890123,
    "t": True, "nul": None, "xs": [3, 1, 2], "words": ["pear", "Apple", "fig"], "d": {"b": 1, "a": 2, "items": 9},
    "users": [{"name": "Ann", "age": 31, "tags": ["x", "y"]}, {"name": "bob", "age": 25, "tags": []},
              {"name": "Cid", "age": 31, "meta": {"k": "v"}}],
    "nested": {"list": [1, [2, {"k": None}]], "float": 1.0, "text": "a\"b\\c\n</script>é\u007f"},
    "html": "<a href='x'>&\"</a>", "lines": "one\ntwo\n\nthree\n", "ws": " \t pad \n",
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}],
}

# Each entry is an expression that is printed.
EXPRESSIONS = r"""
1
1.0
1e5
1e16
1e-5
123456789.125
0.1 + 0.2
1_000 + 0x1F + 0b101 + 0o17
1e22
5e-324
1.7976931348623157e308
1e400
-1e400
true
True
none
None
[1, 'a', "b'c", 'd"e', 2.0, true, none]
(1, 2)
(1,)
()
{'a': 1, 'b': [1, 2], 3: none}
{}
[]
1, 2
1,
'a' 'b' "c"
'\n\t\\\'\"\x41\u00e9\U0001F600\q\101'
'é\é'
7 / 2
6 / 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
-7.5 // 2
-7.5 % 2
7.5 % -2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
2 ** 0.5
2 ** 100
10 ** 20 // 3
-(10 ** 20) // 3
-(10 ** 20) % 7
1 / 3
10 ** 30 / 10 ** 10
n + f
n * true
big + 1
big * big
9223372036854775807 + 1
-9223372036854775808 - 1
9223372036854775807 * 2
1 / 0
1 // 0
1 % 0
1.0 / 0
1.0 // 0
1.0 % 0
0 ** -1
'a' + 'b'
'a' + 1
1 + 'a'
'a' * 3
3 * 'ab'
'a' * -1
'a' * 1.5
[1] * 2 + [3]
(1,) + (2,)
[1] + (2,)
[1] - [1]
none + 1
-s
+n
-t
not s
not empty
s ~ n ~ f ~ none ~ true ~ xs
1 ~ 2 + 3
1 < 2 < 3
1 < 2 > 3
1 == 1.0
1 == true
'1' == 1
[1, 2] == [1, 2]
[1, 2] == (1, 2)
(1, 2) < (1, 3)
[1, 'a'] < [1, 2]
[1] < [1, 2]
'a' < 'b'
'a' < 1
none < 1
none == none
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
{1: 'x'} == {1.0: 'x'}
big > 1e22
9007199254740993 == 9007199254740992.0
1 in xs
'ell' in s
1 in s
'b' in d
2 in d
5 not in xs
'x' in nul
'x' in n
missing in xs
'a' in missing
1 and 2
0 and 2
0 or 'x'
empty or none or 0
not 1 == 2
1 if t else 2
1 if empty
(1 if empty) is defined
1 if empty else 2 if empty else 3
s[0]
s[-1]
s[99]
s[1:4]
s[::-1]
s[::2]
s[-3:]
s[:-3]
s[5:1]
u[7:9]
u[-1]
u[::-1]
u|length
xs[0]
xs[-1]
xs[5]
xs[1:]
xs[::-1]
xs[-2::-1]
xs[10:20]
xs[::0]
xs['a']
xs[1.0]
xs[true]
s['upper']()
xs.0
xs.0.1
(1, 2)[1]
range(5)[1:3]
range(5)[-1]
range(5)[::-2]
d.b
d['b']
d['items']
d.missing
d.missing.deeper
d['missing']
d[none]
d[xs]
d[1:2]
nul.x
nul[0]
nul[1:]
n.x
n[0]
missing
missing.x
missing['x']
missing()
missing + 1
missing ~ 'x'
missing == missing
missing == none
missing < 1
-missing
missing|length
missing|list
missing|upper
missing|tojson
missing[1:]
d.missing|default('dflt')
empty|default('dflt')
empty|default('dflt', true)
nul|default('dflt')
nul|d('dflt', boolean=true)
s.__class__
s.__class__.x
s.__class__()
d.__len__
d._private
s._x
missing.__class__
xs.append
xs.append(1)
xs.append is defined
d.update({'a': 1})
d.pop('a')
d.clear.x
s.nothing
s.nothing()
n()
xs.index(1)
xs.index(99)
xs.count(1)
xs.copy()
d.keys()
d.values()
d.items()
d.keys()|list
d.items()|list
d.get('a')
d.get('zz')
d.get('zz', 5)
d.get(xs)
d.copy()
s.upper()
s.lower()
u.upper()
'straße'.upper()
'ὈΔΥΣΣΕΎΣ Σ'.lower()
'İ'.lower()
'ǆ'.title()
"they're bill's 3rd".title()
"they're bill's 3rd"|title
'foo-bar (baz) [qux] <a'|title
'hELLO wORLD'.capitalize()
'hELLO wORLD'|capitalize
'ŉx'|capitalize
'Hello'.swapcase()
'  a b  c '.split()
'  a b  c '.split(none, 1)
'a,b,,c'.split(',')
'a,b,,c'.split(',', 2)
'a,b,,c'.rsplit(',', 1)
'  a b  c '.rsplit(none, 1)
'a,b'.split(sep=',', maxsplit=0)
'a'.split('')
'a'.split(1)
''.split()
''.split(',')
lines.splitlines()
lines.splitlines(true)
'a\r\nb\x0bc\x1cd\u2028e'.splitlines()
ws.strip()
ws|trim
ws.lstrip() ~ '|'
ws.rstrip() ~ '|'
'xxabcxx'.strip('x')
'xyabcyx'.strip('xy')
'xxabc'|trim('x')
'\u3000a\x1f'.strip()
s.startswith('Hell')
s.startswith(('x', 'H'))
s.startswith('l', 2)
s.startswith('', 99)
s.endswith(('d', 'x'))
s.endswith('o', 0, 5)
s.startswith(1)
s.replace('l', 'L')
s.replace('l', 'L', 2)
s.replace('', '-')
s.replace('', '-', 3)
s|replace('l', 'L', 1)
n|replace(7, 8)
s.find('o')
s.find('o', 5)
s.find('zz')
s.rfind('o')
u.find('京')
s.index('W')
s.index('zz')
s.find('', 99)
s.count('l')
s.count('')
s.count('o', 5)
s.partition(', ')
s.rpartition('o')
s.partition('zz')
s.rpartition('zz')
'-'.join(words)
'-'.join(xs)
'-'.join('abc')
'-'.join(1)
'42'.zfill(5)
'-42'.zfill(5)
'a'.center(6) ~ '|'
'ab'.center(5, '*')
'abc'.center(6, '*')
'a'.ljust(3, '.') ~ 'a'.rjust(3, '.')
'ab'|center(7) ~ '|'
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'12'.isdigit() ~ '²'.isdigit() ~ '²'.isdecimal() ~ '½'.isnumeric() ~ '一'.isnumeric() ~ ''.isdigit()
'ab'.isalpha() ~ 'a1'.isalnum() ~ ' \t'.isspace() ~ 'aB'.islower() ~ 'AB1'.isupper() ~ 'Ab Cd'.istitle()
'a\tb'.expandtabs(4)
'{} {}'.format(1, 'x')
'{1} {0} {1!r}'.format(1, 'x')
'{a} {b[0]} {c.name}'.format(a=1, b=xs, c=users[0])
'{{}} {}'.format(1)
'{}'.format()
'{0.__class__}'.format(1)
'{a}'.format(b=1)
'{'.format()
'}'.format()
'{a}'.format_map({'a': 5})
xs|sort
xs|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
users|sort(attribute='age')|map(attribute='name')|list
users|sort(attribute='age,name', reverse=true)|map(attribute='name')|join(',')
users|sort(attribute='meta.k')
[1, 'a']|sort
d|sort
d|dictsort
d|dictsort(by='value')
d|dictsort(reverse=true)
d|dictsort(by='zz')
{'B': 1, 'a': 2}|dictsort
{'B': 1, 'a': 2}|dictsort(true)
xs|dictsort
words|unique|list
['a', 'A', 'b', 1, 1.0, true]|unique|list
['a', 'A']|unique(case_sensitive=true)|list
users|unique(attribute='age')|map(attribute='name')|list
xs|min ~ xs|max
words|min ~ words|max
users|max(attribute='age')
[]|max
[]|max|default('none')
xs|sum
users|sum(attribute='age')
xs|sum(start=10)
[[1], [2]]|sum(start=[])
words|sum
xs|first ~ xs|last
[]|first
[]|last
''|first
s|first ~ s|last
d|first ~ d|last
xs|map('string')|last
xs|reverse|list
s|reverse
d|reverse|list
n|reverse
xs|join
xs|join(', ')
xs|join(1)
users|join(', ', attribute='name')
users|map(attribute='name')|map('upper')|join('/')
users|map(attribute='meta.k', default='?')|list
users|map(attribute='tags.0')|list
words|map('length')|list
words|map('replace', 'p', 'P')|list
xs|map('nofilter')|list
xs|map()|list
xs|map(attribute='a', zz=1)|list
xs|select|list
[0, 1, '', 'a', none]|select|list
[0, 1, '', 'a', none]|reject|list
xs|select('odd')|list
xs|reject('odd')|list
xs|select('gt', 1)|list
xs|select('divisibleby', 2)|list
xs|select('in', [1, 2])|list
xs|select('notest')|list
users|selectattr('tags')|map(attribute='name')|list
users|selectattr('age', 'equalto', 31)|map(attribute='name')|list
users|selectattr('meta', 'defined')|map(attribute='name')|list
users|rejectattr('meta.k', 'defined')|list
messages|selectattr('role', '==', 'user')|first
messages|rejectattr('role', 'in', ['system', 'tool'])|map(attribute='content')|join
xs|selectattr|list
xs|length
d|length
d|count
n|length
xs|map('string')|length
xs|list
d|list
'abc'|list
n|list
range(3)|list
range(5, 1, -2)|list
range(3)
range(1, 9, 2)
range(100001)
range(0)|length
range('a')
range(1, 2, 0)
range(5) == range(0, 5)
3 in range(5)
xs|batch(2)|list
xs|batch(2, 'x')|list
[1,2,3,4,5,6,7]|slice(3)|list
[1,2,3,4,5,6,7]|slice(3, 'x')|list
d|items|list
missing|items|list
xs|items|list
users|groupby('age')
users|groupby('age')|map(attribute='grouper')|list
users|groupby('name')|map(attribute='list')|map('length')|list
['b', 'A', 'a']|map('upper')|list
n|string ~ 'x'
xs|string
lines|indent
lines|indent(2)
lines|indent('> ', first=true)
lines|indent(2, blank=true)
lines|indent(width=2, first=true, blank=true)
n|indent
'a b c'|wordcount ~ 'it\'s, ok-ay'|wordcount
s|truncate(9)
s|truncate(5)
s|truncate(5, true)
'foo bar baz qux'|truncate(9, false, '...', 0)
'foo bar baz qux'|truncate(9, true, '..', 0)
s|truncate(1)
html|e
html|escape|e
html|forceescape
html|e ~ '<'
html|e + '<'
'<' + html|e
html|safe
(html|e)|upper
(html|safe).replace('a', '<')
(html|e) is escaped
('<{}>'|safe).format('<')
[html|safe]
(html|e)|length
s|urlencode
'a/b c?é'|urlencode
{'a b': 'c&d', 'e': 1}|urlencode
d|attr('b')
d|tojson
xs|tojson
nested|tojson
nested|tojson(indent=2)
nested|tojson(indent='\t')
nested|tojson(ensure_ascii=true)
u|tojson ~ u|tojson(true)
d|tojson(sort_keys=true)
d|tojson(separators=(',', ':'))
d|tojson(indent=1, separators=(', ', ' : '))
{1: 1, none: 2, true: 3, 1.5: 4}|tojson
{(1, 2): 3}|tojson
(1, 2)|tojson
[]|tojson(indent=2) ~ {}|tojson(indent=2)
[1.0, 1e16, 1e-7, 100000000000000000000, true, none]|tojson
1e400|tojson
range(3)|tojson
d.items()|tojson
xs|map('string')|tojson
html|tojson
(html|e)|tojson
'\u2028\x00\x1f'|tojson
missing is defined
missing is undefined
s is defined
s is string
n is string
n is number
t is number
t is integer
n is integer
f is float
n is float
t is boolean
n is boolean
t is true
n is true
empty is false
false is false
nul is none
nul is not none
d is mapping
xs is mapping
xs is sequence
d is sequence
s is sequence
n is sequence
missing is sequence
missing is iterable
xs is iterable
n is iterable
nul is iterable
range(3) is sequence
d.items() is iterable
d.items() is sequence
range is callable
s is callable
s.upper is callable
missing is callable
n is odd
n is even
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is equalto(7)
n is ne 7
n is lt 8
n is ge 7
n is greaterthan 9
n is sameas n
none is sameas none
n is in [7]
'a' is in 'abc'
'abc' is lower
'ABC' is upper
n is lower
'upper' is filter
'zz' is filter
'odd' is test
not n is odd
n is not odd and t
n is odd == true
n is nosuchtest
n|nosuchfilter
s|upper|lower|title
s.upper()|length + 1
'a' ~ 'b' | upper
1 + 2 | string | length
dict(a=1, b=2)
dict({'a': 1}, b=2)
dict([('a', 1), ('b', 2)])
dict([1])
namespace(a=1)
namespace(a=1).a
namespace(a=1).b
namespace(a=1)['a']
namespace(_a=1)._a
joiner('|')() ~ 'x'
cycler('a', 'b').next()
cycler()
raise_exception('boom')
raise_exception('boom ' ~ n)
raise_exception(n)
strftime_now('%d %B %Y')
strftime_now('%Y-%m-%d %H:%M:%S %j %a %b %p %I %y %% %U %w %f')
strftime_now('%-d/%-m %e')
[1, 2, 3].length
words | map('first') | list
[[1, 2], [3]] | map('sum') | list
xs|sort(nosuch=1)
s|upper(1)
s.upper(1)
'abc'.split(',', nosuch=1)
d.get()
(d.items()|first)[0]
users[0].tags[-1]
users[0]['name'][0]|lower
users|map(attribute='name')|first
[*xs]
dict(**d)
range(*[1, 4])|list
'a'.replace(*['a', 'b'])
users | tojson | length
1 == 1 == 1
1 != 2 != 1
'a' 'b' in 'xaby'
"x" if nul is none and n > 3 or t else "y"
(n > 3) ~ ''
[n, f, s][1]
{'k': [1, 2]}.k[0]
{'a': 1}['a'] + 1
'abc'[1]
'{"a": 1}'
{'a': {'b': {}}}
{{}}
{'a'}
[1, 2
(1
1 +
'abc
a b
a.
a[
1 if
x is
x|
%
a ! b
@
""".strip("\n").split("\n")

# Each entry is a whole template.
TEMPLATES = [
    'a{# c #}b',
    'a {#- c -#} b',
    '  {# c #}\nx',
    'a\n',
    'a\n\n',
    'a\r\nb\rc',
    '  {% if true %}\n  x\n  {% endif %}\ny',
    '  {%- if true %}\n  x\n  {%- endif %}\ny',
    '  {%+ if true %}\n  x\n  {%+ endif %}\ny',
    'a {% if true +%}\nx{% endif %}\n\ny',
    'a {% if true -%}\n\n x{% endif -%}  \n\ny',
    'a\n  {{ 1 }}  \nb',
    'a\n  {{- 1 -}}  \nb',
    'a\n\t {% set x = 1 %}  {{ x }}',
    'x {% set x = 1 %} y',
    '{% raw %}{{ x }} {% if %}{% endraw %}',
    '{% raw -%}  a {%- endraw %} b',
    '  {% raw %}\n a\n  {% endraw %}\nb',
    '{% raw %}a',
    '{# a',
    '{% if true %}{{ {"a": {"b": 1}}.a.b }}{% endif %}',
    '{{ "}}" }}{{ "%}" }}{% set a = "%}" %}{{ a }}',
    '{% for x in xs %}{{ x }}{% endfor %}',
    '{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}',
    '{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}',
    '{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}',
    '{% for x in xs %}{{ loop.cycle("a", "b") }}{% endfor %}',
    '{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}',
    '{% for x in xs %}{{ loop }}{% endfor %}',
    '{% for x in [] %}x{% else %}none{% endfor %}',
    '{% for x in missing %}x{% else %}none{% endfor %}',
    '{% for x in xs %}{% break %}{% else %}else{% endfor %}',
    '{% for x in xs %}{{ x }}{% else %}else{% endfor %}',
    '{% for x in xs %}{% continue %}{% else %}else{% endfor %}',
    '{% for x in xs %}{% if loop.first %}{% continue %}{% endif %}{{ x }}{% else %}else{% endfor %}',
    '{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }} {{ loop.length }} {% endfor %}',
    '{% for x in xs if x > 9 %}x{% else %}none{% endfor %}',
    '{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}',
    '{% for k in d %}{{ k }};{% endfor %}',
    '{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}',
    '{% for a, b in [[1]] %}{{ a }}{% endfor %}',
    '{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}',
    '{% for a, b in [1] %}{{ a }}{% endfor %}',
    '{% for a in 5 %}{% endfor %}',
    '{% for a in none %}{% endfor %}',
    '{% for c in "añb" %}{{ c }}-{% endfor %}',
    '{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}',
    '{% break %}',
    '{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}',
    '{% for x in xs %}{% for y in [1, 2] %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}',
    '{% for n in [{"v": 1, "c": [{"v": 2, "c": []}]}] recursive %}{{ n.v }}@{{ loop.depth }}({{ loop(n.c) }}){% endfor %}',
    '{% for x in xs %}{{ loop(xs) }}{% endfor %}',
    '{% for x in xs %}{% set y = x %}{% endfor %}{{ y }}',
    '{% set y = 0 %}{% for x in xs %}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}',
    '{% set ns = namespace(y=0) %}{% for x in xs %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}',
    '{% for x in xs %}{% if loop.first %}{% set z = x %}{% endif %}{{ z }},{% endfor %}',
    '{% if false %}{% set z = 1 %}{% endif %}{{ z }}|{{ s }}',
    '{% if false %}{% set s = 1 %}{% endif %}{{ s }}',
    '{{ s }}{% set s = 1 %}{{ s }}',
    '{% for x in [1] %}{{ s }}{% set s = 2 %}{{ s }}{% endfor %}{{ s }}',
    '{% set a, b = 1, 2 %}{{ a }}{{ b }}',
    '{% set a, b = "xy" %}{{ a }}{{ b }}',
    '{% set (a, (b, c)) = (1, (2, 3)) %}{{ a }}{{ b }}{{ c }}',
    '{% set a = 1, 2 %}{{ a }}',
    '{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}',
    '{% set d.x = 1 %}',
    '{% set nope.x = 1 %}',
    '{% set 1 = 2 %}',
    '{% set true = 2 %}',
    '{% set x %}a{{ n }}b{% endset %}[{{ x }}]',
    '{% set x | upper %}abc{% endset %}{{ x }}',
    '{% set x | replace("b", "x") | upper %}abc{% endset %}{{ x }}',
    '{% set ns = namespace() %}{% set ns.a %}t{% endset %}{{ ns.a }}',
    '{% set x %}{% set inner = 1 %}{{ inner }}{% endset %}{{ x }}{{ inner }}',
    '{% filter upper %}a{{ s }}b{% endfilter %}',
    '{% filter replace("a", "x") | upper %}banana{% endfilter %}',
    '{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}',
    '{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}',
    '{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}',
    '{% macro m(a, b=2, c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(a=1, c=9) }}',
    '{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}{{ m(1) }}',
    '{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}',
    '{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}',
    '{% macro m(a) %}{% endmacro %}{{ m(b=2) }}',
    '{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}',
    '{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2) }}',
    '{% macro m(a, a) %}{% endmacro %}',
    '{% macro m(a=1, b) %}{% endmacro %}',
    '{% macro m() %}x{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}',
    '{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}body{{ n }}{% endcall %}',
    '{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}',
    '{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}',
    '{% macro m() %}x{% endmacro %}{% call m() %}{% endcall %}',
    '{% call n %}{% endcall %}',
    '{% call s.replace("l", "L") %}{% endcall %}',
    '{% macro m() %}{{ late }}{% endmacro %}{% set late = 1 %}{{ m() }}{% set late = 2 %}{{ m() }}',
    '{% set o = 1 %}{% macro m() %}{{ o }}{% set o = 2 %}{{ o }}{% endmacro %}{{ m() }}{{ o }}',
    '{% for x in xs %}{% macro m() %}{{ x }}{{ loop.index }}{% endmacro %}{{ m() }} {% endfor %}',
    '{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}',
    '{% generation %}a{% set g = 1 %}{{ g }}{% endgeneration %}{{ g }}',
    '{% for m in messages %}{% if m.role == "assistant" %}{% generation %}{{ m.content }}{{ loop.index }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}',
    '{% for x in xs %}{% generation %}{% break %}{% endgeneration %}{% endfor %}',
    '{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}',
    '{% if missing %}a{% elif empty %}b{% elif xs %}c{% endif %}',
    '{% if missing.x %}a{% endif %}',
    '{% if n == 7: %}a{% endif %}',
    '{% if a if b else c %}{% endif %}',
    '{% if false %}{{ x|nosuchfilter }}{% endif %}ok',
    '{% if true %}{{ x|nosuchfilter }}{% endif %}ok',
    '{{ x|nosuchfilter if false else 1 }}',
    '{% if false %}{% for x in xs %}{{ x|nosuchfilter }}{% endfor %}{% endif %}ok',
    '{% if false %}{{ x is nosuchtest }}{% endif %}ok',
    '{% print n, s %}',
    '{% nosuch %}',
    '{% if true %}',
    '{% for x in xs %}{% endif %}',
    '{% endfor %}',
    '{% for x in xs %}{% set loop = 1 %}{% endfor %}',
    '{% set loop = 1 %}{{ loop }}',
    '{% set x = xs|map("string") %}{{ x|join }}|{{ x|join }}',
    '{% set g = xs|select("gt", 1) %}{{ g|first }}{{ g|list }}',
    '{% for x in xs|map("string") %}{{ loop.index }}/{{ loop.length }} {{ loop.last }} {% endfor %}',
    '{% for x in xs|reverse %}{{ x }}{{ loop.nextitem }}{% endfor %}',
    '{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}',
    '{% for k, v in d|items %}{{ k }}{{ v }}{% endfor %}',
    '{% for g in users|groupby("age") %}{{ g.grouper }}:{{ g.list|length }}{{ g[0] }} {% endfor %}',
    '{% for age, us in users|groupby("age") %}{{ age }}:{{ us|map(attribute="name")|join(",") }} {% endfor %}',
    '{% for row in xs|batch(2, 0) %}{{ row|join("-") }};{% endfor %}',
    '{% set j = joiner(", ") %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}',
    '{% set c = cycler("a", "b") %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.current }}',
    '{% set ns = namespace(found=false) %}{% for x in xs if not ns.found %}{{ x }}{% set ns.found = true %}{% endfor %}',
    '{% set ns = namespace(a=[]) %}{% set ns.a = ns.a + [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns }}',
    '{% for m in messages %}{{ m.role }}: {{ m["content"] }}\n{% endfor %}',
    '{% for m in messages %}\n  {%- if m.role == "user" %}\n    {{- "U:" + m.content }}\n  {%- else %}\n    {{- m.role }}\n  {%- endif %}\n{%- endfor %}\n',
    '{%- set ns = namespace(last=-1) -%}\n{%- for m in messages -%}{%- if m.role == "user" -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}\n{{- ns.last -}}',
    '{% set x = {"a": [1, {"b": 2}]} %}{{ x.a[1].b }}{{ x["a"][0] }}{{ x.a.1.b }}',
    '{{ xs|map("upper") is iterable }}{{ xs|map("upper") is sequence }}',
    '{% set x = "a" %}{% set x = x ~ "b" %}{% if true %}{% set x = x ~ "c" %}{% endif %}{{ x }}',
    '{% set range = 3 %}{{ range }}',
    '{% for x in xs %}{{ "," if not loop.first }}{{ x }}{% endfor %}',
    '{% for x in xs -%}\n  {{ x }}\n{%- endfor %}',
    'a\n{% for x in xs %}\n- {{ x }}\n{% endfor %}\nb',
    'a\n    {% if t %}\n    b\n    {% endif %}\nc\n',
    '{{ n\n}}\n{{ nope.x }}',
    '\n\n{{ 1 / 0 }}',
    '{{ [1,\n2,\n3|nosuch] }}',
    '{% set f = s.upper %}{{ f() }}',
    '{% macro m(x) %}{{ x|upper }}{% endmacro %}{{ [m("a"), m("b")]|join("-") }}',
    '{% macro m(kwargs) %}{{ kwargs }}{% endmacro %}{{ m(1) }}',
    '{% macro m(caller=none) %}{{ caller }}{{ caller is none }}{% endmacro %}{{ m() }}',
    '{% macro m(caller) %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}',
    '{% macro outer() %}{% macro inner() %}I{{ caller() }}{% endmacro %}{% call inner() %}C{% endcall %}{% endmacro %}{{ outer() }}',
    '{% set t = (1, 2, 3) %}{{ t[0] }}{{ t[-1] }}{{ t|length }}{{ t + (4,) }}{{ t.index(2) }}{{ t.count(9) }}',
    '{{ (xs, d)|tojson }}{{ {"t": (1, 2)} }}',
    '{% for i in range(3) %}{% for j in range(i) %}{{ i }}{{ j }} {% endfor %}{% endfor %}',
    '{% for x in xs %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}',
    '{{ messages[-1].role }}{{ messages[1:]|length }}{{ messages[0]["role"] }}',
    '{% if messages[0].role == "system" and messages|length > 1 %}{{ messages[1:][0].content }}{% endif %}',
    '{% if (messages|last).role == "assistant" %}{{ (messages|last).content }}{% endif %}',
    '{{ messages|map(attribute="role")|list|tojson }}',
    '{{ messages|selectattr("role", "equalto", "system")|list|length }}',
    '{% set roles = messages|map(attribute="role")|list %}{{ "user" in roles }}{{ "tool" in roles }}',
    '{{- "a" -}}   b   {{- "c" -}}',
    'a  {%- if true -%}  b  {%- endif -%}  c',
    '{%if true%}x{%endif%}{{1}}{{ 1}}{{1 }}',
    '{{ {"a": 1}.items()|list }}{{ {"a": 1}.keys() }}{{ {"a": 1}.values()|list }}',
    '{{ "a" if true }}{{ "b" if false }}{{ ("b" if false) is undefined }}',
    '{{ s[:5] }}{{ s[-5:] }}{{ s[::3] }}{{ s[4:0:-1] }}{{ s[none:none] }}',
    '{{ {"a": 1, "b": {"c": [1, 2]}}|tojson(indent=4) }}',
    '{{ u|upper }}{{ u|length }}{{ u.split(" ") }}{{ u|tojson }}',
    '{{ "\\u2028"|tojson }}{{ "\\t"|tojson }}{{ "\\x7f"|tojson(ensure_ascii=true) }}',
    '{{ "caf\\u00e9\\n" ~ \'it\\\'s\' }}',
    '{{ none ~ "" }}{{ true ~ "" }}{{ 1.0 ~ "" }}{{ [none, true, 1.50] }}',
    '{%- macro extra(obj, done) %}{%- if obj is mapping %}{%- for k in obj if k not in done %}{{- "\\n<" ~ k ~ ">" ~ (obj[k] | tojson | safe) ~ "</" ~ k ~ ">" }}{%- endfor %}{%- endif %}{%- endmacro %}{{ extra(nested, ["text"]) }}{{ extra(xs, []) }}',
    '{%- for m in messages %}{%- if (m["role"] == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("roles must alternate, " + m["role"]) }}{%- endif %}{%- endfor %}',
    '{% if messages[0]["role"] == "system" %}{% set loop_messages = messages[1:] %}{% set system = messages[0]["content"] %}{% else %}{% set loop_messages = messages %}{% set system = false %}{% endif %}{% for m in loop_messages %}{% if loop.index0 == 0 and system != false %}{% set content = "<<" ~ system ~ ">>" + m["content"] %}{% else %}{% set content = m["content"] %}{% endif %}[{{ content.strip() }}]{% endfor %}',
    '{%- if date_string is not defined %}{%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}{%- endif %}{{- "Today: " + date_string + "\\n" }}',
    '{%- for name, value in nested | items %}{{- name ~ "=" ~ (value if value is string else value | tojson) }}{{- ", " if not loop.last else "" }}{%- endfor %}',
    '{%- set ns = namespace(tools=[], text="") %}{%- for m in messages %}{%- set ns.tools = ns.tools + [m.role] %}{%- set ns.text = ns.text ~ m.content %}{%- endfor %}{{ ns.tools | join("|") }} {{ ns.text }}',
    '{% set last = (messages | selectattr("role", "equalto", "user") | list)[-1] %}{{ last.content }}{{ messages.index(last) }}',
    '{{ (messages | map(attribute="content") | join("\\n")).split("\\n") | reject("equalto", "U") | list }}',
    '{% for u in users %}{% set tags = u.tags if u.tags is defined and u.tags else ["-"] %}{{ u.name.ljust(5, ".") }}{{ tags | join("+") }}{{ "\\n" }}{% endfor %}',
    '{%- macro type(p) -%}{%- if p.enum -%}{{ p.enum | map("tojson") | join(" | ") }}{%- elif p.type == "array" -%}{{ type(p["items"]) }}[]{%- elif p.type is iterable and p.type is not string -%}{{ p.type | join(" | ") }}{%- else -%}{{ p.type | default("any") }}{%- endif -%}{%- endmacro -%}{{ type({"enum": ["a", 1]}) }};{{ type({"type": "array", "items": {"type": "string"}}) }};{{ type({"type": ["a", "b"]}) }};{{ type({}) }}',
    '{{ "<think>\\na\\n</think>\\n\\nb".split("</think>")[-1].lstrip("\\n") }}{{ ("x</think>y".split("</think>") | first).split("<think>") | last }}',
    '{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ add_generation_prompt }}{% if add_generation_prompt is defined and add_generation_prompt %}x{% endif %}',
    '{% set options = namespace(think=thinking | default(true), budget=budget if budget is defined else -1) %}{{ options.think }}{{ options.budget }}',
    '{%- for m in messages -%}\n    {%- if loop.first and m.role != "user" -%}\n        {{- "[" + m.role | upper + "]" -}}\n    {%- endif %}\n    {{ m.content -}}\n{%- endfor %}\n\n',
    '{{ messages | length }} {% for m in messages | reverse if m.role in ("user", "assistant") %}{{ loop.revindex }}{{ m.role[0] | upper }}{% endfor %}',
    '{% set x = none %}{{ x or "none" }}{{ (x | default("d")) is none }}{{ x | default("d", true) }}{{ "" if x is none else x }}',
    '{%- set tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}} -%}{%- for k, v in tool.function.parameters.properties.items() -%}{{ k }}:{{ v.type }}{{ "" if k in (tool.function.parameters.required or []) else "?" }}{%- endfor -%}{{ tool.function | tojson(indent=4) }}',
]

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    cases = []
    for template in ["{{ " + e + " }}" for e in EXPRESSIONS if e] + TEMPLATES:
        cases.append([template, *result(template, VARIABLES)])
    with open(os.path.join(here, "cases.json"), "w", encoding="utf-8") as f:
        f.write('{"variables": ' + json.dumps(VARIABLES) + ',\n"cases": [\n')
        f.write(",\n".join(json.dumps(c) for c in cases))
        f.write("\n]}\n")
    print(len(cases), "cases")
