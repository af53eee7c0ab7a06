import { createServer } from 'node:http'
import { createProtect } from 'onceonly/node'
import { once } from './ledger.ts'

export const protect = createProtect({
  ledger: once,
  who: (request) => ({ tenant: 'acme', caller: request.headers.from ?? 'anonymous' }),
})
export const pay = protect({ name: 'node.pay', effect: 'external' }, (_request, response, { effectKey }) => {
  response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ effectKey }))
})
export const server = createServer((request, response) => void pay(request, response))
