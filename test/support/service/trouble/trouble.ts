import { systems, type Trouble } from './row.ts'
import { apartTroubles, libraryTroubles } from './rows-apart.ts'
import { gatewayTroubles } from './rows-gateway.ts'
import { serverTroubles } from './rows-server.ts'

/**
 * By the place that is asked about it, and a name for each, so that the program that makes them leaves none out: servers on
 * their store, a server that has lost Redis and its broker, a process that has only the library, a gateway on its own store.
 */
export const troubles = {
  server: serverTroubles,
  apart: apartTroubles,
  library: libraryTroubles,
  gateway: gatewayTroubles,
} as const satisfies Readonly<Record<string, Readonly<Record<string, Trouble>>>>

export type Place = keyof typeof troubles

/** The id that each is found by; without its store nothing is found. */
export type Made<At extends Place> = Readonly<
  Record<Exclude<keyof (typeof troubles)[At], 'lostStore' | 'lostClaimsStore'>, string>
>

export const allTroubles: readonly (readonly [name: string, Trouble])[] = Object.values(troubles)
  .flatMap((some): readonly (readonly [string, Trouble])[] => Object.entries(some))
  .toSorted(([, a], [, b]) => systems.indexOf(a.system) - systems.indexOf(b.system))

/** The table of the documentation: one line for each. */
export function tableOfTroubles(): string {
  const code = (text: string | null) => (text === null ? 'none' : `\`${text}\``)
  const cells = allTroubles.map(([, { system, what, command, card, metric, alert, end }]) => [
    system,
    what,
    code(`onceonly ${command}`),
    card ?? 'none',
    code(metric),
    code(alert),
    end,
  ])
  const heads = ['system', 'what goes wrong', 'command, and page', 'card', 'metric', 'alert', 'how it ends']
  return [heads, heads.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n')
}
