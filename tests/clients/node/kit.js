// What every client for Node is tried with, as programs/kit.py does it for Python.
// `ask(at, question, {stream, search, tool})` gives [text, pieces, cited]; `leave` hangs up.
import { readFileSync } from 'node:fs'

const SWITCH = 'What does the search switch decide?'
export const WEATHER = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
export const weather = ({ city }) => `sunny in ${city}`

const must = (right, words) => {
  if (!right) throw new Error(JSON.stringify(words).slice(0, 300))
}

export async function tryAll(name, ask, leave) {
  const { BASE: base, OFF, KEY: key, MODEL: model, DOWN, GONE } = process.env
  const at = { base, key, model }
  const mustFail = async (where, words, question, more) => {
    let told
    try {
      told = await ask(where, question, more)
    } catch (error) {
      const said = `${error.message} ${error.responseBody ?? ''}`
      return must(said.toLowerCase().includes(words), said)
    }
    must(false, ['no error', told])
  }
  const checks = {
    answer: async () => {
      const told = await ask(at, 'Say hello.', {})
      must(told[0] === 'Hello.', told)
    },
    stream: async () => {
      const told = await ask(at, 'Say hello.', { stream: true })
      must(told[0] === 'Hello.' && told[1] > 1, told)
    },
    search: async () => {
      for (const stream of [false, true]) {
        const told = await ask(at, SWITCH, { search: true, stream })
        must(told[0].includes('[1]') && told[2].some(url => url.includes('library://docs/')), told)
      }
    },
    tools: async () => {
      const told = await ask(at, 'Is it warm in Paris?', { tool: true })
      must(told[0].endsWith('is warm.'), told)
    },
    stop: async () => {
      await leave(at, 'wait')
      must(await (await fetch(GONE)).json(), 'the run went on after its client had left')
    },
    down: () => mustFail({ ...at, model: DOWN }, 'ollama', 'Say hello.', {}),
    off: () => mustFail({ ...at, base: OFF }, 'switched off', SWITCH, { search: true }),
  }
  const lock = JSON.parse(readFileSync(new URL('package-lock.json', import.meta.url)))
  const told = { version: lock.packages[`node_modules/${name}`].version }
  for (const [check, run] of Object.entries(checks)) {
    try {
      await run()
      told[check] = 'ok'
    } catch (error) {
      told[check] = `${error.name}: ${error.message}`.slice(0, 400)
    }
  }
  console.log(JSON.stringify(told))
  process.exit(0)
}
