import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LedgerErrorCode } from '../core/errors.ts'
import { ledgerErrors, OnceError } from '../core/errors.ts'
import type { Ledger } from '../ledger.ts'
import { memoryStore } from '../stores/memory/index.ts'
import { createGuard } from './guard.ts'

/** A ledger whose every claim fails like this. */
function failing(code: LedgerErrorCode): Ledger<unknown> {
  const claim = () => Promise.reject(new OnceError(code, 'no claim'))
  return { operation: ({ name }: { name: string }) => ({ name, claim }) } as unknown as Ledger<unknown>
}

test('the guard opens only for a store that is away or busy', async () => {
  const opened: string[] = []
  for (const code of Object.keys(ledgerErrors) as LedgerErrorCode[]) {
    const guard = createGuard<string>({ ledger: failing(code), name: 'g', identity: (text) => ['t', text] })
    const verdict = await guard.send('hello', async () => 'sent').catch((error: unknown) => error)
    if ((verdict as { kind?: string }).kind === 'unguarded') opened.push(code)
    else assert.equal((verdict as OnceError).code, code)
  }
  assert.deepEqual(opened.sort(), ['store_busy', 'store_unavailable'])
})

test('a store that is given as a ledger is named', () => {
  const make = () => createGuard({ ledger: memoryStore() as never, name: 'g', identity: () => ['acme'] })
  const message = 'The `ledger` of createGuard is a store. Make a ledger: createLedger({ store }).'
  assert.throws(make, { code: 'bad_option', message })
})
