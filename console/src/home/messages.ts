import { type Answer, fresh } from './api.ts'
import { type Demonstration, recordOf, shownOf, text } from './demo.ts'

interface Message {
  readonly _id: string
  readonly conversationId: string
  readonly message: string
}

export const messages: Demonstration = {
  name: 'messages',
  title: 'Messages',
  promise: 'Identical content goes out once, with or without a key.',
  button: 'Send twice',
  operations: 'POST /api/messages',
  async run(api) {
    const key = `home-${fresh()}`
    const body = {
      channel: 'local',
      recipientEmail: 'ada@example.com',
      message: `Your table ${fresh()} is booked for eight o’clock.`,
    }
    const sent = [
      await api.send('POST', '/api/messages', { key, body }),
      await api.send('POST', '/api/messages', { key, body }),
      await api.send('POST', '/api/messages', { body }),
    ] as const
    const ids = sent.map((answer) => messageOf(answer)?._id ?? null)
    const list = `/api/messages?conversationId=${messageOf(sent[0])?.conversationId ?? ''}`
    const { body: page } = await api.send('GET', list)
    const stored = ((page['messages'] ?? []) as readonly Message[]).filter((each) => each.message === body.message)
    const isOne = stored.length === 1 && new Set(ids).size === 1 && ids[0] !== null
    const facts = (answer: Answer) => [['Message', messageOf(answer)?._id ?? text(answer.body['detail'])]] as const
    const third = shownOf('Same text, no key', sent[2], facts(sent[2]))
    const isBlocked = sent[2].body['duplicateOnly'] === true
    return {
      answers: [
        shownOf('First request', sent[0], facts(sent[0])),
        shownOf('Same key again', sent[1], facts(sent[1])),
        isBlocked ? { ...third, badge: 'duplicate', tone: 'wait' } : third,
      ],
      kept: isOne,
      verdict: isOne
        ? `Three requests, one message: ${ids[0]}.`
        : `${stored.length} messages were stored, under ${new Set(ids).size} ids.`,
      links: [recordOf(key)],
    }
  },
}

function messageOf({ body }: Answer): Message | null {
  return (body['message'] ?? null) as Message | null
}
