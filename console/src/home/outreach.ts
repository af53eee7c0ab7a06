import { type Answer, fresh, settled } from './api.ts'
import { checked, type Demonstration, text } from './demo.ts'

const steps = (mark: string) => [
  { id: 'hello', type: 'email', subject: 'Welcome', template: `Good to have you, {{lead.email}} (${mark}).` },
  { id: 'phone', type: 'branch', when: { path: 'lead.phone', op: 'exists' }, else: 'thanks' },
  { id: 'thanks', type: 'email', subject: 'Thanks', template: `Thank you for your time, {{lead.email}} (${mark}).` },
]

const endStates = ['succeeded', 'failed', 'cancelled', 'unknown']

export const outreach: Demonstration = {
  name: 'outreach',
  title: 'Outreach',
  promise: 'A recorded step is never performed again: a replay compares, and sends nothing.',
  button: 'Replay a run',
  operations: 'POST /api/runs/{id}/replay',
  async run(api) {
    const mark = fresh()
    const keys = { key: `home-${mark}` }
    const lead = checked(
      await api.send('POST', '/api/messages', {
        ...keys,
        body: { channel: 'local', recipientEmail: `grace-${mark}@example.com`, message: 'Hello Grace' },
      }),
    )
    const leadId = text(lead.body['leadId'])
    const sequence = checked(
      await api.send('POST', '/api/sequences', { ...keys, body: { name: 'Home page', steps: steps(mark) } }),
    )
    const runId = `home-${mark}`
    const path = `/api/sequences/${text(sequence.body['id'])}/runs`
    checked(await api.send('POST', path, { ...keys, body: { leadId, runId } }))
    const ended = await settled(
      () => api.send('GET', `/api/runs/${runId}`),
      ({ body }) => endStates.includes(text(body['state'])),
    )
    const mails = async () => {
      const { body } = await api.send('GET', `/api/messages?leadId=${leadId}`)
      return ((body['messages'] ?? []) as readonly unknown[]).length
    }
    const before = await mails()
    const replays = [
      await api.send('POST', `/api/runs/${runId}/replay`, { body: {} }),
      await api.send('POST', `/api/runs/${runId}/replay`, { body: {} }),
    ] as const
    const after = await mails()
    const isKept = before === after && replays.every(({ body }) => body['performed'] === 0)
    const ran = (ended.body['steps'] ?? []) as readonly unknown[]
    return {
      answers: [
        {
          title: 'The run',
          badge: text(ended.body['state']),
          tone: ended.body['state'] === 'succeeded' ? 'good' : 'wait',
          facts: [
            ['Steps', String(ran.length)],
            ['Messages', String(before)],
          ],
        },
        replayOf('Replay', replays[0]),
        replayOf('Replay again', replays[1]),
      ],
      kept: isKept,
      verdict: isKept
        ? `Replayed twice, nothing sent: still ${after} messages.`
        : `There were ${before} messages, and now there are ${after}.`,
      links: [{ text: 'Runs in the console', address: '/console/runs' }],
    }
  },
}

function replayOf(title: string, { body }: Answer) {
  const compared = (body['steps'] ?? []) as readonly { readonly status: string }[]
  const same = compared.filter(({ status }) => status === 'same').length
  const facts = [
    ['Same steps', `${same} of ${compared.length}`],
    ['Performed', text(body['performed'])],
  ] as const
  return { title, badge: text(body['verdict']).replaceAll('-', ' '), tone: 'calm', facts } as const
}
