import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Relations } from './relations.ts'

const by = (client: string, cseq = 1) => ({ client, epoch: 1, cseq })

test('two replies that did not know of each other are concurrent, and both come after their parent', () => {
  const relations = new Relations()
  relations.note({ log: 'eu.1', n: 1, ...by('ada'), seen: {} })
  relations.note({ log: 'eu.1', n: 2, ...by('bob'), seen: { 'eu.1': 1 } })
  relations.note({ log: 'us.1', n: 1, ...by('eve'), seen: { 'eu.1': 1 } })
  relations.note({ log: 'us.1', n: 2, ...by('eve', 2), seen: { 'eu.1': 1 } })
  assert.deepEqual(relations.concurrentWith(by('bob')), [by('eve'), by('eve', 2)])
  assert.deepEqual(relations.concurrentWith(by('ada')), [])
  assert.equal(relations.compare(by('ada'), by('eve')), 'before')
  assert.equal(relations.compare(by('eve', 2), by('eve')), 'after')
  assert.equal(relations.compare(by('ada'), by('ada')), null)
  assert.equal(relations.compare(by('ada'), by('unknown')), null)
})

test('a message in two logs counts as seen in either', () => {
  const relations = new Relations()
  relations.note({ log: 'eu.1', n: 1, ...by('ada'), seen: {} })
  relations.note({ log: 'us.1', n: 1, ...by('ada'), seen: {} })
  relations.note({ log: 'us.1', n: 2, ...by('bob'), seen: { 'us.1': 1 } })
  assert.equal(relations.compare(by('ada'), by('bob')), 'before')
})

test('the oldest make room', () => {
  const relations = new Relations({ mostMessages: 2 })
  for (let n = 1; n <= 3; n++) relations.note({ log: 'eu.1', n, ...by('ada', n), seen: {} })
  assert.equal(relations.compare(by('ada', 1), by('ada', 2)), null)
  assert.equal(relations.compare(by('ada', 2), by('ada', 3)), 'before')
})
