import type { AddressInfo } from 'node:net'
import express, { type Request, type RequestHandler, type Response } from 'express'
import { createLedger } from 'onceonly'
import { createProtect } from 'onceonly/express'
import { memoryStore } from 'onceonly/memory'
import { type Order, receiptOf } from '../harness/orders.ts'
import { loadPeer } from '../harness/peers.ts'
import { readTask } from '../harness/program.ts'
import { COUNT_PATH, PATH, type PeerTask } from './task.ts'

/** The same Express application, behind one protection or the other. */
const task = readTask<Pick<PeerTask, 'peer'>>()
const app = express()
let effects = 0

const handler = (request: Request, response: Response) => {
  effects++
  response.status(201).json(receiptOf(request.body as Order))
}

if (task.peer === 'ours') {
  const ledger = createLedger({ store: memoryStore() })
  const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'checkout' }) })
  app.post(PATH, express.json(), protect({ name: 'order', effect: 'external' }, handler))
} else {
  const peer = await loadPeer<{
    idempotency(): RequestHandler
    getSharedIdempotencyService(): { isHit(request: unknown): boolean }
  }>('express-idempotency')
  app.post(PATH, express.json(), peer.idempotency(), (request, response) => {
    // A hit was answered already, and is passed on all the same.
    if (!peer.getSharedIdempotencyService().isHit(request)) handler(request, response)
  })
}
app.post(COUNT_PATH, (_request, response) => void response.json({ effects }))

const server = app.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.once('SIGTERM', () => process.exit(0))
