import { test } from 'node:test'
import { fuzz } from './fuzz.ts'

/** A small share of `npm run lab -- fuzz`. */
test('whatever is thrown at the server, the gateway, its configuration and the command is answered with a clear word', async (t) => {
  const thrown = await fuzz({
    seed: 1,
    requests: 700,
    configurations: 2_000,
    commands: 150,
    forged: 2_000,
    frames: 2_000,
  })
  t.diagnostic(JSON.stringify(thrown))
})
