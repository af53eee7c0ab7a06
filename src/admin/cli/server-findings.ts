import { SECOND } from '../../ledger/core/limits.ts'
import type { Finding } from '../core/finding.ts'
import { Usage } from './usage.ts'

/** The server checks its own storages before it answers. */
const ANSWER_MS = 30 * SECOND

/** What a running server finds, such as whether it can write its uploads: only it has the rights and the network for that. */
export async function serverFindings(server: string, token: string | undefined): Promise<readonly Finding[]> {
  const url = URL.parse('/api/console/doctor', server)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Usage(`--server is not an http(s) address: ${server}`)
  if (!token) throw new Usage('--server needs the token of operators or viewers in ONCEONLY_OPERATOR_TOKEN.')
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}` },
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_MS),
  }).catch((cause: unknown) => {
    throw new Usage(`${url.origin} does not answer (${cause instanceof Error ? cause.message : String(cause)}).`)
  })
  if (!response.ok) throw new Usage(`${url.origin} answers ${response.status} to GET ${url.pathname}.`)
  const body: unknown = await response.json().catch(() => null)
  if (!hasFindings(body)) throw new Usage(`${url.origin} answers with no findings; is it an Onceonly server?`)
  return body.findings
}

const verdicts: readonly unknown[] = ['ok', 'warning', 'danger'] satisfies Finding['verdict'][]

function hasFindings(body: unknown): body is { readonly findings: readonly Finding[] } {
  const { findings } = (body ?? {}) as { readonly findings?: unknown }
  if (!Array.isArray(findings)) return false
  return findings.every((each: Partial<Finding> | null) => {
    return typeof each?.name === 'string' && typeof each.found === 'string' && verdicts.includes(each.verdict)
  })
}
