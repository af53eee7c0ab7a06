import { createLedger } from 'onceonly'
import { createAdmin, createStanding } from 'onceonly/admin'
import { createConsole } from 'onceonly/console'
import { sqliteStore } from 'onceonly/sqlite'
import { createPrometheusMeter, createTelemetry, observeProcess } from 'onceonly/telemetry'
import { createConsoleServer } from '../../../../src/admin/console/serve.ts'
import { claim } from '../../../../src/testing/conformance/requests.ts'
import type { Made } from './trouble.ts'

const MINUTE_MS = 60_000
const CALL = { timeoutMs: 60_000 }

interface Library extends AsyncDisposable {
  readonly made: Made<'library'>
  readonly url: string
  metrics(): Promise<readonly string[]>
}

/** A store on which no process does background work: what one left behind stays. A console of its own shows it. */
export async function openLibrary(file: string, token: string): Promise<Library> {
  await using stack = new AsyncDisposableStack()
  const store = stack.use(sqliteStore(file, { testClock: true }))
  const left = claim('left-behind')
  await store.claims.apply(left, CALL)
  await store.clock.advance(MINUTE_MS, CALL)
  const ledger = stack.use(createLedger({ store, background: false }))
  const admin = createAdmin({ store, ledger })
  const meter = createPrometheusMeter()
  createTelemetry({ meter, standing: createStanding(store) })
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
    made: { staleLease: left.id },
    url: `http://127.0.0.1:${port}`,
    metrics: async () => [await meter.text()],
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  }
}
