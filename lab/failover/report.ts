import type { ClusterNode } from '../../tools/servers/node.ts'

/** One line of progress, with the time since the laboratory began. */
export function createReporter(name: string) {
  const startedMs = performance.now()
  return (line: string, figures?: object) => {
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
    console.log(`${name}, ${seconds} s: ${line}${figures === undefined ? '' : ` ${JSON.stringify(figures)}`}`)
  }
}

/** Ctrl-C ends the nodes too, and nothing stays behind. */
export function stopOnSignals(stop: () => Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      console.log('Ending the cluster …')
      void stop().finally(() => process.exit(130))
    })
  }
}

/** Loudly, and under `CI=true` an error: a laboratory without its programs has shown nothing. */
export function skipLoudly(what: string): void {
  console.log(`SKIPPED: ${what} cannot be had on this machine; nothing was shown.`)
  if (process.env['CI'] === 'true') process.exitCode = 1
}

export type Harm = 'kill' | 'pause'

/** Does it, and gives the way back. */
export async function harm(node: ClusterNode, how: Harm): Promise<() => Promise<void>> {
  if (how === 'kill') {
    await node.kill()
    return () => node.revive()
  }
  await node.pause()
  return async () => node.resume()
}
