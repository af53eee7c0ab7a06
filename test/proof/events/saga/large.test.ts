import assert from 'node:assert/strict'
import { createSaga, defineSaga, event, ignore } from 'onceonly/saga'
import { assertHandled, onEveryStage, outbox } from '../../../support/events/saga/stage.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

interface Project {
  readonly questions: { readonly text: string; answer: string | null }[]
}

/** As large as the project documents that once made handling slow enough for every race to be lost. */
const QUESTIONS = 2_023
const DOCUMENT_BYTES = 1_450_000

const text = 'Which of these references reports the outcome in question? '.repeat(13).slice(0, 700)
const project = (): Project => ({ questions: Array.from({ length: QUESTIONS }, () => ({ text, answer: null })) })

const reviews = defineSaga({
  name: 'reviews',
  events: {
    Opened: event<{ readonly id: string; readonly by: string }>({ correlate: ({ id }) => id }),
    Answered: event<{ readonly id: string; readonly question: number; readonly answer: string }>({
      correlate: ({ id }) => id,
    }),
  },
  states: ['Open'],
  terminal: ['Closed'],
  oneShot: true,
  data: project,
  table: {
    initial: {
      Opened: {
        to: ['Open'],
        handle(data, _opened, tools) {
          for (const index of [0, 1, 2]) tools.send('Ask', { id: tools.id, text: data.questions[index]?.text.length })
          tools.transitionTo('Open')
        },
      },
      Answered: ignore,
    },
    Open: {
      Opened: ignore,
      Answered: {
        to: ['Closed'],
        handle(data, { question, answer }, tools) {
          const asked = data.questions[question]
          if (asked !== undefined) asked.answer = answer
          tools.publish('Noted', { id: tools.id, question })
          if (data.questions.slice(0, 6).every((each) => each.answer !== null)) tools.transitionTo('Closed')
        },
      },
    },
  },
})

let messages = 0
const message = (topic: string, body: Readonly<Record<string, unknown>>) => {
  const id = `large-${++messages}`
  return { id, topic, key: null, sequence: null, body: JSON.stringify(body), headers: {}, deliveries: 1 }
}

onEveryStage('an instance of 1.45 MB makes handling slow, and still nothing doubles', async ({ place, sent }) => {
  assert.ok(JSON.stringify(project()).length > DOCUMENT_BYTES)
  const replicas = Array.from({ length: 3 }, () => {
    const store = place.another()
    const ledger = quietLedger(store, outbox)
    // Without the partitioner everything meets, also inside of one process.
    const options = { ledger, background: false, partition: false }
    const conflictDelaysMs = Array.from({ length: 60 }, () => 50)
    return { ledger, saga: createSaga({ definition: reviews, ...options, conflictDelaysMs }) }
  })
  try {
    const opened = replicas.flatMap(({ saga }, index) =>
      ['a', 'b'].map((by) => saga.handle(message('Opened', { id: 'p1', by: `${by}${index}` }))),
    )
    for (const receipt of await Promise.all(opened)) assertHandled(receipt)
    assert.equal((await sent()).filter((line) => line.startsWith('Ask ')).length, 3)
    const answered = replicas.flatMap(({ saga }, index) =>
      [0, 1].map((each) => {
        const question = 2 * index + each
        return saga.handle(message('Answered', { id: 'p1', question, answer: `answer ${question}` }))
      }),
    )
    for (const receipt of await Promise.all(answered)) assertHandled(receipt)
    const [one] = replicas
    const view = await one?.saga.get('p1')
    assert.deepEqual([view?.state, view?.version], ['Closed', 7])
    assert.deepEqual(
      view?.data.questions.slice(0, 7).map(({ answer }) => answer),
      ['answer 0', 'answer 1', 'answer 2', 'answer 3', 'answer 4', 'answer 5', null],
    )
    assert.equal((await sent()).filter((line) => line.startsWith('Noted ')).length, 6)
  } finally {
    for (const { saga, ledger } of replicas) {
      await saga.stop()
      await ledger.stop()
    }
  }
})
