import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postpone } from 'onceonly/inbox'
import { inboxLog, sagaLog } from '../../../../service/events/log.ts'
import type { Log } from '../../../../service/logs.ts'
import { messageOf, onInbox } from '../../../support/events/inbox/stage.ts'

type Line = readonly [level: string, line: Readonly<Record<string, unknown>>]

function captured(): { readonly log: Log; readonly lines: Line[] } {
  const lines: Line[] = []
  const at = (level: string) => (line: Line[1]) => void lines.push([level, line])
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } as unknown as Log
  return { log, lines }
}

onInbox('a first wish for patience is quiet, a repeated one is a warning', {}, async ({ another }) => {
  const { log, lines } = captured()
  const inbox = another({ consumer: 'logged', on: inboxLog(log) })
  const conflict = new Error('Another event changed the instance.')
  const deliver = (deliveries: number) =>
    inbox.receive(messageOf('m1', { deliveries }), () => {
      throw postpone(conflict, { delayMs: 1 })
    })
  await deliver(1)
  await deliver(2)
  assert.deepEqual(
    lines.map(([level, { event, err }]) => [level, event, err]),
    [
      ['debug', 'inbox.postponed', conflict],
      ['warn', 'inbox.postponed', conflict],
    ],
  )
})

test('the event of a saga does not replace the name of the line', () => {
  const { log, lines } = captured()
  const about = { saga: 'imports', id: 's1', event: 'SearchUploadSaved', messageId: 'm1' }
  sagaLog(log)({ kind: 'conflict', ...about, tries: 1, exhausted: false })
  sagaLog(log)({ kind: 'swept', saga: 'imports', removed: 2 })
  const names = lines.map(([, { event, sagaEvent }]) => [event, sagaEvent])
  assert.deepEqual(names, [
    ['saga.conflict', 'SearchUploadSaved'],
    ['saga.swept', undefined],
  ])
})
