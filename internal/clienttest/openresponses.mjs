// Asks the server at URL what the compliance suite of Open Responses asks (openresponses.org,
// version 2026-04-24): node openresponses.mjs FOLDER URL KEY WHO. Each answer, and each event of a
// stream, is held against the schemas of the published OpenAPI document. These come with llmprobe,
// which is installed in FOLDER and was built from that document. It prints a line for each case and
// exits with 1 if one fails.
//
// WHO answers is agent, the scripted one, or demo, of which only the form of its answers is checked.
//
// Two things that the suite has are not here: WebSocket connections (seven cases) and
// /responses/compact (two). Images and files are asked for and must be refused: the models read
// text.
import assert from 'node:assert/strict'
import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises'
import {tmpdir} from 'node:os'
import {join} from 'node:path'
import {pathToFileURL} from 'node:url'

const [folder, url, key, who] = process.argv.slice(2)

// published returns the validators that llmprobe has. Its one file is a program: what starts it is
// cut off.
async function published() {
  const bundle = await readFile(join(folder, 'node_modules/llmprobe/bin/dist/llmprobe.mjs'), 'utf8')
  const start = bundle.lastIndexOf('\nmain().catch(')
  assert.ok(start > 0, 'llmprobe starts otherwise than it did')
  const dir = await mkdtemp(join(tmpdir(), 'openresponses-'))
  try {
    const file = join(dir, 'schemas.mjs')
    await writeFile(file, bundle.slice(0, start) + '\nexport {responseResourceSchema as response, responsesStreamEventSchema as event}\n')
    return await import(pathToFileURL(file))
  } finally {
    await rm(dir, {recursive: true})
  }
}

const schemas = await published()

function conforms(kind, value) {
  const {success, error} = schemas[kind].safeParse(value)
  assert.ok(success, `${JSON.stringify(value)} is no ${kind}: ${JSON.stringify(error?.issues)}`)
}

const post = (path, body) => fetch(url + '/v1' + path, {
  method: 'POST', headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + key}, body: JSON.stringify({model: 'agent', ...body}),
})

// ask returns the response, which conforms.
async function ask(body) {
  const answer = await post('/responses', body)
  assert.equal(answer.status, 200, await answer.clone().text())
  const response = await answer.json()
  conforms('response', response)
  return response
}

// The events in which the server follows OpenAI's libraries, where the published document has other
// names (response.reasoning.delta): clients would not see what a model thinks.
const named = ['response.reasoning_text.delta', 'response.reasoning_text.done']

// stream returns the events of a streamed response and the response at their end. All conform, and
// have numbers without a gap.
async function stream(body) {
  const answer = await post('/responses', {...body, stream: true})
  assert.equal(answer.status, 200, await answer.clone().text())
  assert.equal(answer.headers.get('content-type'), 'text/event-stream')
  const events = []
  for (const block of (await answer.text()).split('\n\n').filter(block => block && block !== 'data: [DONE]')) {
    const [name, data] = block.split('\n')
    const event = JSON.parse(data.slice('data: '.length))
    assert.equal(name, 'event: ' + event.type)
    assert.equal(event.sequence_number, events.length)
    if (!named.includes(event.type)) conforms('event', event)
    events.push(event)
  }
  assert.deepEqual(events.slice(0, 2).map(event => event.type), ['response.created', 'response.in_progress'])
  return {events, response: events.at(-1).response}
}

const user = content => ({type: 'message', role: 'user', content})
const texts = response => response.output.flatMap(item => item.content ?? []).map(part => part.text).join('')
const types = response => response.output.map(item => item.type)
const weather = {type: 'function', name: 'get_weather', parameters: {type: 'object', properties: {location: {type: 'string'}}, required: ['location']}}
const place = [user('What is the weather like in `San Francisco`?')]

function completed(response, text) {
  assert.equal(response.status, 'completed')
  assert.equal(texts(response), text)
}

// The cases of the suite by its names, and after them what the document says beyond those.
const cases = {
  'basic-response': async () => completed(await ask({input: [user('Say exactly: one two three')]}), 'one two three'),
  'assistant-phase': async () => completed(await ask({input: [
    {type: 'message', role: 'assistant', phase: 'commentary', content: 'The number is known.'},
    {type: 'message', role: 'assistant', phase: 'final_answer', content: 'It is four.'}, user('Say exactly: four'),
  ]}), 'four'),
  'response-output-phase-schema': () => {}, // it asks no server
  'streaming-response': async () => {
    const {events, response} = await stream({input: [user('Count from 1 to 5.')]})
    completed(response, '1, 2, 3, 4, 5')
    const said = events.filter(event => event.type === 'response.output_text.delta').map(event => event.delta).join('')
    assert.equal(said, texts(response))
  },
  'system-prompt': async () => completed(await ask({input: [{type: 'message', role: 'system', content: 'Say the word "ahoy", whatever you are asked.'}, user('Hello.')]}), 'ahoy'),
  'tool-calling': async () => {
    const response = await ask({input: place, tools: [weather]})
    assert.deepEqual(types(response), ['function_call'])
    assert.deepEqual(JSON.parse(response.output[0].arguments), {location: 'San Francisco'})
    assert.deepEqual(response.tools, [{...weather, description: null, strict: null}])
  },
  'tool-calling-streaming': async () => {
    const {events, response} = await stream({input: place, tools: [weather]})
    const of = type => events.filter(event => event.type === type)
    for (const type of ['response.output_item.added', 'response.output_item.done']) assert.deepEqual(of(type).map(event => event.item.type), ['function_call'])
    const whole = of('response.function_call_arguments.delta').map(event => event.delta).join('')
    assert.equal(of('response.function_call_arguments.done')[0].arguments, whole)
    assert.equal(response.output[0].arguments, whole)
  },
  'function-call-roundtrip': async () => {
    const first = await ask({input: place, tools: [weather], tool_choice: {type: 'function', name: 'get_weather'}})
    const [call] = first.output
    const second = await ask({input: [...place, call, {type: 'function_call_output', call_id: call.call_id, output: '18 degrees'}], tools: [weather]})
    completed(second, 'The tool says: 18 degrees')
  },
  'multi-turn': async () => completed(await ask({input: [
    user('My name is Ada.'), {type: 'message', role: 'assistant', content: 'Hello Ada.'}, user('What is my name?'),
  ]}), 'Ada'),
  'previous-response-id': async () => {
    const first = await ask({input: 'My name is Ada.'})
    const second = await ask({input: 'What is my name?', previous_response_id: first.id})
    completed(second, 'Ada')
    assert.equal(second.previous_response_id, first.id)
  },
  'image-input': () => refused('input_image', {type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo='}),
  'file-input': () => refused('input_file', {type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0='}),
  'compact-response, compact-missing-model': async () => {
    const answer = await post('/responses/compact', {input: [user('x')]})
    assert.equal(answer.status, 404)
    assert.equal((await answer.json()).error.type, 'not_found_error')
  },

  'what is repeated': async () => {
    const response = await ask({
      input: 'Say exactly: x', instructions: 'Be brief.', metadata: {a: 'b'}, tool_choice: 'none', parallel_tool_calls: false, text: {verbosity: 'medium'},
      tools: [{...weather, description: 'd', strict: false}, {type: 'web_search'}, {type: 'namespace', name: 'n', tools: []}],
      reasoning: {effort: 'low'}, temperature: 0.5, top_p: 0.9, max_output_tokens: 50, prompt_cache_key: 'k', safety_identifier: 's', store: false,
    })
    assert.deepEqual(response.tools, [{...weather, description: 'd', strict: false}])
    assert.deepEqual(response.text, {format: {type: 'text'}, verbosity: 'medium'})
    assert.deepEqual([response.temperature, response.max_output_tokens, response.store], [0.5, 50, false])
  },
  'reasoning': async () => {
    const {response} = await stream({input: 'Say exactly: x', chat_template_kwargs: {enable_thinking: true}})
    assert.deepEqual(types(response), ['reasoning', 'message'])
    conforms('response', response)
  },
  'incomplete': async () => {
    const {events, response} = await stream({input: 'Say exactly: one two three', max_output_tokens: 2})
    assert.equal(events.at(-1).type, 'response.incomplete')
    assert.equal(response.incomplete_details.reason, 'max_output_tokens')
  },
  'log-probabilities': async () => {
    const {events} = await stream({input: 'Say exactly: x', include: ['message.output_text.logprobs'], top_logprobs: 2})
    assert.ok(events.some(event => event.logprobs?.length))
  },
  'what the schemas refuse': async () => {
    const {events, response} = await stream({input: place, tools: [weather]})
    const missing = Object.keys(response).filter(name => !schemas.response.safeParse({...response, [name]: undefined}).success)
    for (const name of ['id', 'created_at', 'status', 'output', 'tools', 'usage', 'text', 'store', 'reasoning', 'error']) assert.ok(missing.includes(name), name)
    for (const event of events) assert.ok(!schemas.event.safeParse({...event, sequence_number: 'one'}).success, event.type)
    const {call_id, ...item} = response.output[0]
    assert.ok(!schemas.response.safeParse({...response, output: [item]}).success)
  },
}

// refused asks with a part that the server must refuse by its name.
async function refused(name, part) {
  const answer = await post('/responses', {input: [user([{type: 'input_text', text: 'What is this?'}, part])]})
  assert.equal(answer.status, 400)
  const {error} = await answer.json()
  assert.match(error.message, new RegExp(name))
  assert.equal(error.param, 'input[0].content[1].type')
}

// Of a model that says what it likes: the form alone.
const free = {
  'basic-response': async () => assert.equal((await ask({input: [user('Say hello.')], max_output_tokens: 8})).usage.output_tokens, 8),
  'streaming-response': async () => {
    const {response} = await stream({input: [user('Count from 1 to 5.')], max_output_tokens: 8})
    conforms('response', response)
    assert.ok(texts(response).length > 0)
  },
}

let failed = 0
for (const [id, run] of Object.entries(who === 'demo' ? free : cases)) {
  try {
    await run()
    console.log('ok', id)
  } catch (error) {
    failed++
    console.log('FAILED', id, error)
  }
}
process.exit(failed ? 1 : 0)
