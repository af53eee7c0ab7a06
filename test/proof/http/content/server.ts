import { createServer } from 'node:http'
import { createLedger, SECOND } from 'onceonly'
import { createProtect } from 'onceonly/node'
import { sqliteStore } from 'onceonly/sqlite'

/** One process of a service whose callers send no key. Its first kind hangs in the handler, until it is killed. */

const [, , path = '', kind = ''] = process.argv
const store = sqliteStore(path)
const ledger = createLedger({ store })
const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'ann' }) })

const make = protect(
  {
    name: 'thing.make',
    effect: 'external',
    key: 'optional',
    // Short, because the test waits until it has ended.
    leaseMs: SECOND,
    content: { of: (body) => [body.name], waitMs: 0, onStoreDown: 'closed' },
  },
  async (_request, response, context) => {
    if (kind === 'attaches') await context?.attach({ type: 'thing', id: '1' })
    process.send?.('running')
    if (kind === 'answers') response.writeHead(201).end('made')
  },
)

const server = createServer((request, response) => void make(request, response))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') process.send?.(address?.port)
})
process.on('disconnect', () => process.exit())
