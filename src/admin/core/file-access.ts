import { stat } from 'node:fs/promises'
import type { Finding } from './finding.ts'

/** Rights of all users but the owner. */
const OTHERS = 0o077

/** Whether others on this machine can read or write these files and folders; those that are not there do not count. */
export async function accessFinding(name: string, paths: readonly string[]): Promise<Finding> {
  const open: string[] = []
  for (const path of paths) {
    const mode = await stat(path).then(
      (found) => found.mode,
      () => 0,
    )
    if ((mode & OTHERS) !== 0) open.push(`${path} has the mode ${(mode & 0o777).toString(8)}`)
  }
  return open.length === 0
    ? { name, verdict: 'ok', found: 'only the owner can read and write what is kept', advice: null }
    : {
        name,
        verdict: 'warning',
        found: open.join('; '),
        advice: 'Others on this machine can read it: chmod go= PATH, unless you share it on purpose.',
      }
}
