// @anthropic-ai/sdk.
import Anthropic from '@anthropic-ai/sdk'
import { tryAll, WEATHER, weather } from './kit.js'

const messagesOf = at => new Anthropic({ baseURL: at.base, apiKey: at.key, maxRetries: 0 }).messages

async function ask(at, question, { stream, search, tool }) {
  const tools = search ? [{ type: 'web_search_20250305', name: 'web_search' }] : []
  if (tool) tools.push({ name: 'get_weather', input_schema: WEATHER })
  const messages = [{ role: 'user', content: question }]
  const given = { model: at.model, max_tokens: 500, messages, tools }
  let pieces = 1
  let whole
  if (stream) {
    pieces = 0
    const events = messagesOf(at).stream(given)
    events.on('text', () => pieces++)
    whole = await events.finalMessage()
  } else whole = await messagesOf(at).create(given)
  while (whole.stop_reason === 'tool_use') {
    const calls = whole.content.filter(block => block.type === 'tool_use')
    const content = calls.map(b => ({ type: 'tool_result', tool_use_id: b.id, content: weather(b.input) }))
    messages.push({ role: 'assistant', content: whole.content }, { role: 'user', content })
    whole = await messagesOf(at).create(given)
  }
  const texts = whole.content.filter(block => block.type === 'text')
  const cited = texts.flatMap(block => block.citations ?? []).map(note => note.url)
  return [texts.map(block => block.text).join(''), pieces, cited]
}

async function leave(at, question) {
  const given = { model: at.model, max_tokens: 9, messages: [{ role: 'user', content: question }] }
  for await (const _ of await messagesOf(at).create({ ...given, stream: true })) break
}

await tryAll('@anthropic-ai/sdk', ask, leave)
