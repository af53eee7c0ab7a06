import type { Replay, RunPage } from 'onceonly/run'
import { createEngine, defineRun, httpChannel, providers } from 'onceonly/run'
import type { Place } from '../../support/place.ts'
import { sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'

/** Replays under way at once. */
const LANES = 8

const mail = httpChannel({
  name: 'mail',
  provider: providers.http,
  // Nothing is sent in earnest, so that a thousand runs take seconds.
  fetch: async () => new Response('{}'),
})

const letter = (greeting: string) =>
  defineRun('letter', async (run, input: { readonly name: string }) => {
    const at = run.now()
    const id = await run.step('draft', () => `draft for ${input.name}`)
    const body = { text: `${greeting} ${input.name}`, at, id }
    return run.step('send', { channel: mail }, () => ({ url: 'http://mail.invalid/', body }))
  })

/** The code of the next deploy. */
export const changed = defineRun('letter', (run, input: { readonly name: string }) =>
  letter(input.name === 'Zoe' ? 'Hello' : 'Dear').body(run, input),
)

/** Many runs, replayed by the code that made them and by code that changed for every hundredth of them. */
export async function replayMany(
  place: Place,
  count: number,
  today: typeof changed,
  progress: (done: number) => void = () => {},
) {
  const before = letter('Dear')
  await using first = await createEngine({ ledger: quietLedger(sqlStore(place.store)), runs: [before] })
  const handles = await Promise.all(
    Array.from({ length: count }, (_, n) => first.start(before, { runId: `letter ${n}`, input: { name: nameOf(n) } })),
  )
  await Promise.all(handles.map((handle) => handle.result()))
  await using second = await createEngine({
    ledger: quietLedger(sqlStore(place.another())),
    runs: [today],
    work: false,
  })
  const verdicts: Record<Replay['verdict'], number> = {
    identical: 0,
    'identical-but-for-ignored-paths': 0,
    diverged: 0,
  }
  let performed = 0
  let cursor: string | null = null
  do {
    const page: RunPage = await second.list({ cursor })
    const left = page.runs.map(({ runId }) => runId)
    const lane = async () => {
      for (let runId = left.pop(); runId !== undefined; runId = left.pop()) {
        const replay = await second.replay(runId)
        verdicts[replay.verdict] += 1
        performed += replay.performed
        progress(verdicts.identical + verdicts.diverged)
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    cursor = page.cursor
  } while (cursor !== null)
  return { ...verdicts, performed }
}

function nameOf(number: number): string {
  return number % 100 === 0 ? 'Zoe' : 'Ann'
}
