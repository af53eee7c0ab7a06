import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionsMost } from './connections.ts'
import { frontLimits } from './limits.ts'

const limits = (files: string) => `Limit   Soft Limit  Hard Limit  Units\nMax open files  ${files}  1048576  files\n`

test('half of the files that a process may have open are for connections of clients', () => {
  assert.equal(connectionsMost(limits('1500')), 750)
  assert.equal(connectionsMost(limits('1048576')), frontLimits.connections)
  assert.equal(connectionsMost(limits('unlimited')), frontLimits.connections)
  assert.equal(connectionsMost(''), frontLimits.connections)
})
