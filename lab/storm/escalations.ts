import type { System, World } from './world.ts'

const QUEUE = 'BILLING'
const PREFIX = 'STORM-'
/** Two callers with keys of their own want the same case escalated: one of them learns that it already is. */
const RIVALS = 0.25

/** Escalation, audit row, event and notice: one of each per case, whatever keys its callers use. */
export function createEscalations(world: World): System {
  const { cluster, clients, random, apiKey, operatorToken } = world
  const cases = new Map<string, { created: number; already: number; readonly people: number }>()

  async function escalate(caseId: string, key: string): Promise<'created' | 'already'> {
    const answer = await clients.insist(
      {
        method: 'POST',
        path: '/case-escalations',
        bearer: apiKey,
        headers: { 'idempotency-key': key },
        body: { caseId, targetQueue: QUEUE, reason: 'storm' },
      },
      ({ status, body }) => status === 201 || (status === 409 && String(body['type']).endsWith('already-escalated')),
    )
    return answer.status === 201 ? 'created' : 'already'
  }

  return {
    name: 'escalations',
    lanes: 3,
    async command(number) {
      const caseId = `${PREFIX}${number}`
      await clients.insist(
        {
          method: 'PUT',
          path: `/api/admin/cases/${caseId}`,
          bearer: operatorToken,
          body: { workspaceId: 'demo', escalatableTo: [QUEUE] },
        },
        ({ status }) => status === 200,
      )
      const people = random.chance(RIVALS) ? 2 : 1
      const seen = { created: 0, already: 0, people }
      cases.set(caseId, seen)
      const ends = await Promise.all(
        Array.from({ length: people }, (_, who) => escalate(caseId, `escalation-${number}-${who}`)),
      )
      for (const end of ends) seen[end] += 1
    },
    left: async () => [],
    async judge() {
      const rows = await cluster.sql<{ id: string; escalations: unknown; audit: unknown; notices: unknown }>(
        `select c.id as id,
           (select count(*) from case_escalations e where e.case_id = c.id) as escalations,
           (select count(*) from escalation_audit a join case_escalations e on e.number = a.escalation
             where e.case_id = c.id) as audit,
           (select count(*) from escalation_notices n where n.case_id = c.id) as notices
         from cases c where c.id like '${PREFIX}%'`,
      )
      const wrong: string[] = []
      for (const { id, escalations, audit, notices } of rows) {
        const counts = [escalations, audit, notices].map(Number)
        if (counts.some((count) => count !== 1))
          wrong.push(`${id} has ${counts[0]} escalations, ${counts[1]} audit rows and ${counts[2]} notices`)
        const seen = cases.get(id)
        if (seen === undefined || seen.created !== 1 || seen.already !== seen.people - 1)
          wrong.push(`${id}: its callers got ${JSON.stringify(seen)}`)
      }
      const [numbers] = await cluster.sql<{ last: unknown; n: unknown }>(
        'select (select last from escalation_counter) as last, (select count(*) from case_escalations) as n',
      )
      if (Number(numbers?.last) !== Number(numbers?.n))
        wrong.push(`escalations are numbered up to ${numbers?.last}, and there are ${numbers?.n}`)
      if (rows.length !== cases.size) wrong.push(`${rows.length} cases are there, and ${cases.size} were made`)
      return wrong
    },
    figures: () => ({
      commands: [...cases.values()].reduce((sum, { people }) => sum + people, 0),
      escalations: cases.size,
    }),
  }
}
