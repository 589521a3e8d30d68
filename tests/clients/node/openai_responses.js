// openai-node, Responses.
import OpenAI from 'openai'
import { tryAll, WEATHER, weather } from './kit.js'

const create = (at, input, more) =>
  new OpenAI({ baseURL: `${at.base}/v1`, apiKey: at.key, maxRetries: 0 }).responses.create({
    model: at.model,
    input,
    ...more,
  })

async function ask(at, question, { stream, search, tool }) {
  const tools = search ? [{ type: 'web_search' }] : []
  if (tool) tools.push({ type: 'function', name: 'get_weather', parameters: WEATHER, strict: false })
  let pieces = 1
  let whole
  if (stream) {
    pieces = 0
    for await (const event of await create(at, question, { tools, stream: true })) {
      if (event.type === 'response.output_text.delta') pieces++
      if (event.type === 'response.completed') whole = event.response
    }
  } else whole = await create(at, question, { tools })
  for (;;) {
    const calls = whole.output.filter(item => item.type === 'function_call')
    if (!calls.length) break
    const results = calls.map(({ call_id, arguments: given }) => {
      return { type: 'function_call_output', call_id, output: weather(JSON.parse(given)) }
    })
    whole = await create(at, results, { tools, previous_response_id: whole.id })
  }
  const parts = whole.output.filter(item => item.type === 'message').flatMap(item => item.content)
  const text = parts.map(part => part.text).join('')
  return [text, pieces, parts.flatMap(part => part.annotations).map(note => note.url)]
}

async function leave(at, question) {
  for await (const _ of await create(at, question, { stream: true })) break
}

await tryAll('openai', ask, leave)
