// Drives the server at URL with the JavaScript clients of OpenAI and Anthropic, which are installed
// in FOLDER: node clients.mjs FOLDER URL KEY. It prints a line for each check and exits with 1 if
// one fails. The model is the scripted agent.
import assert from 'node:assert/strict'
import {createRequire} from 'node:module'

const [folder, url, key] = process.argv.slice(2)
const require = createRequire(folder + '/')
const {OpenAI, BadRequestError, NotFoundError, AuthenticationError, APIUserAbortError} = require('openai')
const {Anthropic, ...anthropic} = require('@anthropic-ai/sdk')

const openai = new OpenAI({baseURL: url + '/v1', apiKey: key, maxRetries: 0})
const claude = new Anthropic({baseURL: url, apiKey: key, maxRetries: 0})
const model = 'agent'
const city = {type: 'object', properties: {city: {type: 'string'}}, required: ['city']}
const person = {type: 'object', properties: {name: {type: 'string'}, age: {type: 'integer'}}, required: ['name', 'age'], additionalProperties: false}
const user = content => [{role: 'user', content}]
const weather = "What's the weather and the time in Paris?"
const names = ['get_weather', 'get_time', 'get_news']
const long = 'Count from 1 to 10000.'

let failed = 0
async function check(name, run) {
  try {
    await run()
    console.log('ok', name)
  } catch (error) {
    failed++
    console.log('FAILED', name, error)
  }
}

// cancelled leaves a stream after its first words, and counts how many events came after that.
async function cancelled(stream) {
  let after = 0
  for await (const _ of stream) {
    if (++after === 10) stream.controller.abort()
  }
  assert.ok(after < 1000, `${after} events`)
}

await check('chat', async () => {
  const answer = await openai.chat.completions.create({model, messages: user('Say exactly: one two')})
  assert.equal(answer.choices[0].message.content, 'one two')
  const stream = openai.chat.completions.stream({model, messages: user('Say exactly: one two'), stream_options: {include_usage: true}})
  const final = await stream.finalChatCompletion()
  assert.equal(final.choices[0].message.content, 'one two')
  assert.equal(final.choices[0].finish_reason, 'stop')
  assert.equal(final.usage.prompt_tokens, answer.usage.prompt_tokens)
  assert.ok(final.usage.prompt_tokens_details.cached_tokens > 0)
})

await check('chat tools', async () => {
  const tools = names.map(name => ({type: 'function', function: {name, parameters: city}}))
  const called = async more => {
    const final = await openai.chat.completions.stream({model, messages: user(weather), tools, ...more}).finalChatCompletion()
    const calls = final.choices[0].message.tool_calls ?? []
    for (const call of calls) assert.deepEqual(JSON.parse(call.function.arguments), {city: 'Paris'})
    assert.equal(final.choices[0].finish_reason, calls.length ? 'tool_calls' : 'stop')
    return calls.map(call => call.function.name).join(' ')
  }
  assert.equal(await called({}), 'get_weather get_time')
  assert.equal(await called({parallel_tool_calls: false}), 'get_weather')
  assert.equal(await called({tool_choice: 'required'}), 'get_weather get_time')
  assert.equal(await called({tool_choice: 'none'}), '')
  assert.equal(await called({tool_choice: {type: 'function', function: {name: 'get_news'}}}), 'get_news')
  const runner = openai.chat.completions.runTools({model, messages: user('What is the weather in Paris?'), stream: true,
    tools: [{type: 'function', function: {name: 'get_weather', parameters: city, parse: JSON.parse, function: args => `sunny in ${args.city}`}}]})
  assert.equal(await runner.finalContent(), 'The tool says: sunny in Paris')
})

await check('chat schema', async () => {
  const format = {type: 'json_schema', json_schema: {name: 'person', strict: true, schema: person}}
  const answer = await openai.chat.completions.parse({model, messages: user('Invent a person.'), response_format: format})
  assert.equal(typeof answer.choices[0].message.parsed.age, 'number')
})

await check('chat errors', async () => {
  for (const stream of [false, true]) {
    const ask = more => openai.chat.completions.create({model, messages: user('x'), stream, ...more})
    await assert.rejects(ask({temperature: 3}), e => e instanceof BadRequestError && e.param === 'temperature' && e.type === 'invalid_request_error' && e.requestID !== null)
    await assert.rejects(ask({model: 'another'}), e => e instanceof NotFoundError && e.code === 'model_not_found')
  }
  const stranger = new OpenAI({baseURL: url + '/v1', apiKey: 'sk-wrong', maxRetries: 0})
  await assert.rejects(stranger.models.list(), AuthenticationError)
})

await check('chat cancel', async () => {
  await cancelled(await openai.chat.completions.create({model, messages: user(long), stream: true}))
  const stream = openai.chat.completions.stream({model, messages: user(long)})
  stream.on('content', (_, said) => said.includes('9') && stream.abort())
  await assert.rejects(stream.finalContent(), APIUserAbortError)
})

await check('responses', async () => {
  const first = await openai.responses.create({model, input: 'My name is Ada.'})
  const stream = openai.responses.stream({model, input: 'What is my name?', previous_response_id: first.id})
  const second = await stream.finalResponse()
  assert.equal(second.output_text, 'Ada')
  assert.equal(second.status, 'completed')
  assert.ok(second.usage.input_tokens_details.cached_tokens > 0)
  const tools = names.map(name => ({type: 'function', name, parameters: city, strict: false}))
  const called = await openai.responses.stream({model, input: weather, tools}).finalResponse()
  assert.deepEqual(called.output.map(item => item.name), ['get_weather', 'get_time'])
  const results = called.output.map(item => ({type: 'function_call_output', call_id: item.call_id, output: item.name}))
  assert.equal((await openai.responses.create({model, input: results, tools, previous_response_id: called.id})).output_text, 'The tool says: get_weather; get_time')
  const parsed = await openai.responses.parse({model, input: 'Invent a person.', text: {format: {type: 'json_schema', name: 'person', schema: person}}})
  assert.equal(typeof parsed.output_parsed.age, 'number')
  await assert.rejects(openai.responses.create({model, input: 'x', previous_response_id: 'resp_none'}), e => e instanceof BadRequestError && e.param === 'previous_response_id')
  await cancelled(await openai.responses.create({model, input: long, stream: true}))
})

const ask = content => ({model, max_tokens: 1000, messages: user(content)})

await check('messages', async () => {
  const answer = await claude.messages.create(ask('Say exactly: one two'))
  assert.equal(answer.content[0].text, 'one two')
  const final = await claude.messages.stream(ask('Say exactly: one two')).finalMessage()
  assert.deepEqual(final.content[0].text, 'one two')
  assert.equal(final.stop_reason, 'end_turn')
  const count = await claude.messages.countTokens({model, messages: user('Say exactly: one two')})
  assert.equal(count.input_tokens, final.usage.input_tokens)
  const marked = await claude.messages.create({...ask('Say exactly: one two'), cache_control: {type: 'ephemeral'}})
  assert.ok(marked.usage.cache_read_input_tokens > 0)
})

await check('messages tools', async () => {
  const tools = names.map(name => ({name, input_schema: city}))
  const called = async more => {
    const final = await claude.messages.stream({...ask(weather), tools, ...more}).finalMessage()
    const calls = final.content.filter(block => block.type === 'tool_use')
    for (const call of calls) assert.deepEqual(call.input, {city: 'Paris'})
    assert.equal(final.stop_reason, calls.length ? 'tool_use' : 'end_turn')
    return calls.map(call => call.name).join(' ')
  }
  assert.equal(await called({}), 'get_weather get_time')
  assert.equal(await called({tool_choice: {type: 'any', disable_parallel_tool_use: true}}), 'get_weather')
  assert.equal(await called({tool_choice: {type: 'none'}}), '')
  assert.equal(await called({tool_choice: {type: 'tool', name: 'get_news'}}), 'get_news')
  const runner = claude.beta.messages.toolRunner({...ask('What is the weather in Paris?'),
    tools: [{name: 'get_weather', input_schema: city, parse: input => input, run: input => `sunny in ${input.city}`}]})
  const last = await runner
  assert.equal(last.content[0].text, 'The tool says: sunny in Paris')
})

await check('messages schema', async () => {
  const answer = await claude.messages.create({...ask('Invent a person.'), output_config: {format: {type: 'json_schema', schema: person}}})
  assert.equal(typeof JSON.parse(answer.content[0].text).age, 'number')
})

await check('messages errors', async () => {
  await assert.rejects(claude.messages.create({...ask('x'), temperature: 3}), e => e instanceof anthropic.BadRequestError && e.requestID !== null)
  await assert.rejects(claude.messages.stream({...ask('x'), model: 'another'}).finalMessage(), anthropic.NotFoundError)
  const stranger = new Anthropic({baseURL: url, apiKey: 'sk-wrong', maxRetries: 0})
  await assert.rejects(stranger.messages.create(ask('x')), anthropic.AuthenticationError)
})

await check('messages cancel', async () => {
  await cancelled(await claude.messages.create({...ask(long), stream: true}))
})

process.exit(failed ? 1 : 0)
