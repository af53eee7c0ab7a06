import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createAdmin, createStanding } from 'onceonly/admin'
import { createConsole } from 'onceonly/console'
import { createEngine, defineRun, schedule } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import { createPrometheusMeter, createTelemetry, observeProcess } from 'onceonly/telemetry'
import { createConsoleServer } from '../../../../src/admin/console/serve.ts'
import { claim } from '../../../../src/testing/conformance/requests.ts'
import { until } from '../../../../src/testing/until.ts'
import { makeCounts } from './make-counts.ts'
import type { Made } from './trouble.ts'

const MINUTE_MS = 60_000
const CALL = { timeoutMs: 60_000 }

interface Library extends AsyncDisposable {
  readonly made: Made<'library'>
  readonly url: string
  metrics(): Promise<readonly string[]>
}

const report = defineRun('report', (run, day: string) => run.step('send', () => day))
const tidy = defineRun('tidy', async (run) => {
  await run.onCancel('undo', (cleanUp) =>
    cleanUp.step('undo', { semantics: 'transactional', retry: { attempts: 1 } }, () =>
      Promise.reject(new Error('away')),
    ),
  )
  await run.waitFor('go')
})
const broken = schedule('broken-input', {
  run: report,
  input: () => {
    throw new Error('no such report')
  },
  cron: '* * * * *',
})

/** A store on which no process does background work: what one left behind stays. A console of its own shows it. */
export async function openLibrary(file: string, token: string): Promise<Library> {
  await using stack = new AsyncDisposableStack()
  const store = stack.use(sqliteStore(file, { testClock: true }))
  const meter = createPrometheusMeter()
  const telemetry = createTelemetry({ meter, standing: createStanding(store) })
  const ledger = stack.use(createLedger({ store, background: false, on: telemetry.ledger }))
  await makeCounts(store, ledger)
  const charge = ledger.operation({ name: 'charge', effect: 'external' })
  // A function is no plain data.
  await charge.run({ tenant: 'acme', caller: 'shop', key: 'unkept-1' }, null, () => () => 'charged')
  const admin = createAdmin({ store, ledger })
  const left = claim('left-behind')
  await store.claims.apply(left, CALL)
  const engine = stack.use(await createEngine({ ledger, on: telemetry.run, runs: [report, tidy], schedules: [broken] }))
  const { result, view } = await engine.start(tidy, { runId: 'tidy-1', input: null })
  await until('it waits', view, ({ state }) => state === 'sleeping')
  await engine.cancel('tidy-1')
  await assert.rejects(result(), { code: 'run_failed' })
  await store.clock.advance(2 * MINUTE_MS, CALL)
  observeProcess(meter)
  const tokens = { operator: token, viewer: null, chosen: true }
  const onError = (error: unknown) => {
    throw error
  }
  const console = createConsole({ admin, meter, tokens, localOnly: 'For this machine.', onError })
  const server = createConsoleServer({ console, onError })
  stack.defer(() => server.stop())
  const { port } = await server.listen(0, '127.0.0.1')
  const disposal = stack.move()
  return {
    made: { unkeptResult: 'unkept-1', brokenCleanUp: 'tidy-1', staleLease: left.id, brokenSchedule: broken.name },
    url: `http://127.0.0.1:${port}`,
    metrics: async () => [await meter.text()],
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  }
}
