import { createInbox } from 'onceonly/inbox'
import type { Consumer } from '../events/events.ts'
import type { ServerParts } from '../parts.ts'
import type { Escalation } from './escalation.ts'

export interface Notices extends Consumer {
  stop(): Promise<void>
}

type Parts = Pick<ServerParts, 'once' | 'base' | 'watch'>

/** What is published about an escalation. */
export interface CaseEscalated extends Escalation {
  readonly tenant: string
}

/** Notifies the people of a queue of escalations: once per event, however often it is delivered. */
export function createNotices({ once, base, watch }: Parts): Notices {
  const inbox = createInbox({ ledger: once, consumer: 'escalations.notices', on: watch.inbox })
  return {
    consume: (subscriber) =>
      inbox.consume<CaseEscalated>(subscriber, { topics: ['CaseEscalated'] }, async (escalated, { tx, effectKey }) => {
        const { tenant, targetQueue, caseId, escalationId } = escalated
        await tx.query(
          `insert into escalation_notices (id, tenant, target_queue, case_id, escalation_id, noticed_at)
           values (?, ?, ?, ?, ?, ${base.sql.now})`,
          [effectKey, tenant, targetQueue, caseId, escalationId],
        )
      }),
    stop: () => inbox.stop(),
  }
}
