import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Store } from 'onceonly'
import { conformanceCases, runCase } from 'onceonly/testing'
import { redisSubjects } from '../conformance/subjects.ts'

const url = process.env['ONCEONLY_TEST_REDIS_URL']
const HISTORIES = 8
const CALL = { timeoutMs: 10_000 }

/** After every step, what is stored is what was answered: the fast paths of the script write what `transition` says. */
function readingBack(store: Store): Store {
  const { claims } = store
  const apply: typeof claims.apply = async (requests, call) => {
    const answers = await claims.apply(requests, call)
    const { records } = await claims.read(
      requests.map(({ id }) => id),
      CALL,
    )
    for (const [index, answer] of answers.entries()) {
      assert.ok('decision' in answer)
      assert.deepEqual(records[index], answer.record, `after ${requests[index]?.kind}`)
    }
    return answers
  }
  return { ...store, claims: { ...claims, apply } }
}

test('what the scripts write is what they answer', { skip: url === undefined && 'no Redis server' }, async () => {
  const subjects = redisSubjects(url ?? '')
  after(() => subjects.end())
  const histories = conformanceCases({ histories: HISTORIES }).filter(({ name }) => name.includes('random history'))
  assert.equal(histories.length, HISTORIES)
  for (const each of histories) {
    await runCase(each, async () => {
      const subject = await subjects.open()
      return { ...subject, store: readingBack(subject.store) }
    })
  }
})
