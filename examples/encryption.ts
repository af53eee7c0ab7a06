import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger, encryptionFromEnv } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'

// A key as a deployment would give it.
const env = { ONCEONLY_ENCRYPTION_KEYS: `k1=${randomBytes(32).toString('base64')}` }
const folder = await mkdtemp(join(tmpdir(), 'onceonly-example-'))
const file = join(folder, 'orders.db')

const encryption = encryptionFromEnv(env)
const store = sqliteStore(file, encryption && { encryption })
const once = createLedger({ store })

// The phone number is in the response that retries get, and nowhere on the disk.
const order = once.operation<{ phone: string }>({ name: 'order.place', effect: 'repeatable' })
const who = { tenant: 'acme', caller: 'web', key: 'order-1' }
const placed = await order.run(who, { phone: '+15550001111' }, () => 'We call +15550001111')
assert.equal(await order.run(who, { phone: '+15550001111' }, () => 'never'), placed)
await once.stop()
assert.equal((await readFile(file)).includes('15550001111'), false)
await rm(folder, { recursive: true })

console.log('replayed, and nothing readable in the file')
