import { parseArgs } from 'node:util'
import { fuzz } from '../test/proof/fuzz/fuzz.ts'

/**
 * `npm run lab -- fuzz`: three hundred thousand inputs that are nearly right, or not at all. A failure prints its seed.
 */
const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '30000' },
    configurations: { type: 'string', default: '60000' },
    forged: { type: 'string', default: '40000' },
    frames: { type: 'string', default: '50000' },
    commands: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})

const startedMs = performance.now()
const say = (line: string) => console.log(`${((performance.now() - startedMs) / 1_000).toFixed(0)} s: ${line}`)
say(`seed ${values.seed}`)
const thrown = await fuzz({
  seed: Number(values.seed),
  requests: Number(values.requests),
  configurations: Number(values.configurations),
  commands: Number(values.commands),
  forged: Number(values.forged),
  frames: Number(values.frames),
  progress: say,
})
say(`nothing failed, nothing hung. ${JSON.stringify(thrown)}`)
