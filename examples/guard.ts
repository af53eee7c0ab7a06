import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { memoryStore } from 'onceonly/memory'

interface Message {
  readonly workspace: string
  readonly phone: string
  readonly text: string
}

const once = createLedger({ store: memoryStore() })
const guard = createGuard<Message>({ ledger: once, name: 'messages', identity: (m) => [m.workspace, m.phone, m.text] })
const sent: string[] = []

const send = (message: Message) =>
  guard.send(message, async (attempt) => {
    const id = `m-${sent.length + 1}`
    // The original exists from here on: duplicates are answered with it for fifteen minutes.
    await attempt?.attach({ type: 'message', id })
    sent.push(message.text)
    return id
  })

const hello = { workspace: 'acme', phone: '+4915112345678', text: 'Hello!' }
const [first, second] = await Promise.all([send(hello), send(hello)])
assert.deepEqual([first?.kind, second?.kind].sort(), ['duplicate', 'sent'])
assert.equal((await send({ ...hello, text: 'Hello?' })).kind, 'sent')

console.log(`three requests without a key, ${sent.length} messages`)
await once.stop()
