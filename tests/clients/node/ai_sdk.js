// ai-sdk, by Responses.
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, jsonSchema, stepCountIs, streamText, tool as asTool } from 'ai'
import { tryAll, WEATHER, weather } from './kit.js'

function given(at, prompt, { search, tool }) {
  const provider = createOpenAI({ baseURL: `${at.base}/v1`, apiKey: at.key })
  const tools = search ? { web_search: provider.tools.webSearch({}) } : {}
  if (tool) tools.get_weather = asTool({ inputSchema: jsonSchema(WEATHER), execute: weather })
  const model = provider.responses(at.model)
  return { model, prompt, tools, maxRetries: 0, stopWhen: stepCountIs(4), onError: () => {} }
}

async function ask(at, question, more) {
  if (!more.stream) {
    const { text, sources } = await generateText(given(at, question, more))
    return [text, 1, sources.map(source => source.url)]
  }
  const run = streamText(given(at, question, more))
  const said = []
  for await (const piece of run.textStream) said.push(piece)
  return [said.join(''), said.length, (await run.sources).map(source => source.url)]
}

async function leave(at, question) {
  const stop = new AbortController()
  const run = streamText({ ...given(at, question, {}), abortSignal: stop.signal })
  for await (const _ of run.textStream) break
  stop.abort()
}

await tryAll('ai', ask, leave)
