// openai-node, Chat Completions.
import OpenAI from 'openai'
import { tryAll, WEATHER, weather } from './kit.js'

const create = (at, messages, more) =>
  new OpenAI({ baseURL: `${at.base}/v1`, apiKey: at.key, maxRetries: 0 }).chat.completions.create({
    model: at.model,
    messages,
    ...more,
  })

async function ask(at, question, { stream, search, tool }) {
  const more = search ? { web_search_options: {} } : {}
  if (tool) more.tools = [{ type: 'function', function: { name: 'get_weather', parameters: WEATHER } }]
  const messages = [{ role: 'user', content: question }]
  if (stream) {
    const said = []
    const notes = []
    for await (const piece of await create(at, messages, { stream: true, ...more })) {
      const delta = piece.choices[0]?.delta ?? {}
      if (delta.content) said.push(delta.content)
      notes.push(...(delta.annotations ?? []))
    }
    return [said.join(''), said.length, notes.map(n => n.url_citation.url)]
  }
  for (;;) {
    const { message } = (await create(at, messages, more)).choices[0]
    if (!message.tool_calls?.length) {
      return [message.content, 1, (message.annotations ?? []).map(n => n.url_citation.url)]
    }
    messages.push(message)
    for (const call of message.tool_calls) {
      const content = weather(JSON.parse(call.function.arguments))
      messages.push({ role: 'tool', tool_call_id: call.id, content })
    }
  }
}

async function leave(at, question) {
  for await (const _ of await create(at, [{ role: 'user', content: question }], { stream: true })) break
}

await tryAll('openai', ask, leave)
