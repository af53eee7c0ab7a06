import { type Answer, fresh } from './api.ts'
import { type Demonstration, recordOf, shownOf, text } from './demo.ts'

const cases = ['CASE-100', 'CASE-102', 'CASE-103', 'CASE-104']
const queues = ['LEGAL_REVIEW', 'FRAUD_REVIEW', 'BILLING', 'TIER_2']

/** Each press takes another pair, because a case is escalated to a queue once. */
let pressed = Math.floor(Math.random() * cases.length * queues.length)

export const escalations: Demonstration = {
  name: 'escalations',
  title: 'Escalations',
  promise: 'A case is escalated to a queue once, whatever key a caller uses.',
  button: 'Escalate twice',
  operations: 'POST /case-escalations',
  async run(api) {
    const [first, other] = [`home-${fresh()}`, `home-${fresh()}`]
    const body = {
      caseId: cases[pressed % cases.length],
      targetQueue: queues[Math.floor(pressed / cases.length) % queues.length],
      reason: 'Customer disputes the invoice',
    }
    pressed += 1
    const sent = [
      await api.send('POST', '/case-escalations', { key: first, body }),
      await api.send('POST', '/case-escalations', { key: first, body }),
      await api.send('POST', '/case-escalations', { key: other, body }),
    ] as const
    const ids = sent.map(escalationOf)
    const isOne = new Set(ids).size === 1 && ids[0] !== null && sent[1].isReplayed
    const facts = (answer: Answer) =>
      [
        ['Escalation', escalationOf(answer) ?? '–'],
        ...(answer.status < 300 ? [] : [['Why', text(answer.body['title'])] as const]),
      ] as const
    return {
      answers: [
        shownOf('First request', sent[0], facts(sent[0])),
        shownOf('Same key again', sent[1], facts(sent[1])),
        shownOf('Another key', sent[2], facts(sent[2])),
      ],
      kept: isOne,
      verdict: isOne
        ? `One escalation, ${ids[0]}, of ${body.caseId} to ${body.targetQueue}.`
        : `The answers name ${new Set(ids).size} escalations.`,
      links: [recordOf(first)],
    }
  },
}

/** Of the one that was made, or of the one that was there. */
function escalationOf({ body, location }: Answer): string | null {
  if (typeof body['escalationId'] === 'string') return body['escalationId']
  return location?.split('/').at(-1) ?? null
}
