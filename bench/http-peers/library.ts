import { drive } from '../harness/load.ts'
import { orderOf, partsOf, receiptOf } from '../harness/orders.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { openPeer } from './peers.ts'
import type { PeerTask } from './task.ts'

/** Unique keys, a trivial effect, every effect counted; then some of them again, which must be replays. */
const REPEATED = 100

const task = readTask<PeerTask>()
const peer = await openPeer(task)
let effects = 0

function request(number: number): Promise<unknown> {
  const order = orderOf(number)
  return peer.run(partsOf(number).key, order, async () => {
    effects++
    return receiptOf(order)
  })
}

const serverCpuMs = task.place === null ? undefined : createCpuMeter(task.place.serverPid)
const { requests, figures } = await drive({ ...task, request, serverCpuMs })
mustEqual('effects', effects, requests)
for (let number = 0; number < REPEATED; number++) {
  mustEqual('a replay', JSON.stringify(await request(number)), JSON.stringify(receiptOf(orderOf(number))))
}
mustEqual('effects after the replays', effects, requests)
await peer.stop()
answer(figures)
// Some peers leave timers behind.
process.exit(0)
