import { hash } from 'node:crypto'
import { Redis } from 'ioredis'
import { drive } from '../harness/load.ts'
import { OPERATION, orderOf, partsOf, receiptOf } from '../harness/orders.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { RedisTask } from './task.ts'
import { mustHold, WARM_UP } from './task.ts'

/** What one would write by hand: SET NX, the effect, SET. Commands of many callers share a pipeline. */
const LEASE_MS = 30_000
const RETAIN_MS = 7 * 24 * 3_600_000

const task = readTask<RedisTask>()
const client = new Redis(task.url, { enableAutoPipelining: task.callers > 1 })
let effects = 0

async function request(number: number): Promise<unknown> {
  const order = orderOf(number)
  const { tenant, caller, key } = partsOf(number)
  const identity = [tenant, caller, OPERATION, key]
  const id = hash('sha256', JSON.stringify(identity), 'hex').slice(0, 32)
  const fingerprint = `v1:1:${hash('sha256', JSON.stringify(order), 'base64url')}`
  const name = `${task.prefix}:${id}`
  const claimed = await client.set(name, JSON.stringify({ identity, fingerprint }), 'PX', LEASE_MS, 'NX')
  if (claimed !== 'OK') throw new Error(`The key ${key} is taken.`)
  effects++
  const receipt = receiptOf(order)
  await client.set(name, JSON.stringify({ identity, fingerprint, receipt }), 'PX', RETAIN_MS)
  return receipt
}

const { requests, figures } = await drive({
  ...task,
  ...WARM_UP,
  serverCpuMs: createCpuMeter(task.serverPid),
  request,
})
mustEqual('effects', effects, requests)
await mustHold(client, `${task.prefix}:*`, requests)
client.disconnect()
answer(figures)
