import { once } from 'node:events'
import { createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createHttpClient } from '../harness/http-client.ts'
import { drive } from '../harness/load.ts'
import { loadPeer } from '../harness/peers.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { startRestate } from './restate-server.ts'
import type { RunsTask } from './task.ts'
import { STEPS, WARM_UP } from './task.ts'

/** What this side uses of Restate. */
interface Restate {
  workflow(definition: { readonly name: string; readonly handlers: { readonly run: Body } }): object
  createEndpointHandler(options: {
    readonly services: readonly object[]
    readonly logger: () => void
  }): (request: Http2ServerRequest, response: Http2ServerResponse) => void
}

type Body = (ctx: { run<T>(name: string, act: () => Promise<T>): Promise<T> }, number: number) => Promise<number>

const task = readTask<RunsTask>()
const restate = await loadPeer<Restate>('@restatedev/restate-sdk')
let acts = 0
// A workflow, because it is what runs once for an id.
const noops = restate.workflow({
  name: 'noops',
  handlers: {
    run: async (ctx, number) => {
      for (let step = 0; step < STEPS; step++) await ctx.run('noop', async () => ++acts)
      return number
    },
  },
})
// Its server calls back over HTTP/2: that hop belongs to it. Steps act in this process, as on the other sides.
const endpoint = createServer(restate.createEndpointHandler({ services: [noops], logger: () => {} }))
endpoint.listen(0, '127.0.0.1')
await once(endpoint, 'listening')
await using server = await startRestate()
await server.admin('/deployments', { uri: `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}` })
const client = createHttpClient({ socket: server.ingress })

async function request(number: number): Promise<void> {
  const { status, body } = await client.post(`/noops/run-${number}/run`, JSON_BODY, String(number))
  mustEqual('the status', status, 200)
  mustEqual('the result', body, String(number))
}

const JSON_BODY = { 'Content-Type': 'application/json' }
const { requests, figures } = await drive({ ...task, ...WARM_UP, serverCpuMs: createCpuMeter(server.pid), request })
mustEqual('acts', acts, requests * STEPS)
const query = "select count(*) as n from sys_invocation where status = 'completed'"
const { rows } = (await server.admin('/query', { query })) as { rows: { n: number }[] }
mustEqual('completed runs', rows[0]?.n, requests)
client.stop()
endpoint.close()
answer(figures)
