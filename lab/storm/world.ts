import type { Random } from '../../src/testing/random.ts'
import type { Cluster } from '../../test/support/service/cluster.ts'
import type { Clients } from './client.ts'
import type { Network } from './network.ts'
import type { Deeds, StormProvider } from './provider.ts'

/** What the five systems meet in a storm. */
export interface World {
  readonly cluster: Cluster
  readonly clients: Clients
  readonly network: Network
  readonly provider: StormProvider
  readonly random: Random
  /** Of the workspace that everything belongs to. */
  readonly apiKey: string
  readonly operatorToken: string
}

/** One of the five systems, with the truth about what its clients asked for and got. */
export interface System {
  readonly name: string
  /** How many commands are under way at once. */
  readonly lanes: number
  /** Once, before the storm. */
  begin?(): Promise<void>
  /** One command, until its client gets a final answer. */
  command(number: number): Promise<void>
  /** What has no end yet, although the faults are over. */
  left(): Promise<readonly string[]>
  /** Every rule that was broken, in words. Asked once nothing is left. */
  judge(): Promise<readonly string[]>
  figures(): Readonly<Record<string, number>>
  stop?(): Promise<void>
}

/** What holds for every provider: nothing twice, and what is called done was done. */
export function judgeDeeds(what: string, deeds: Deeds, status: string, honoursKeys: boolean): string[] {
  const { done, keys, blind, refused } = deeds
  return [
    ...(done > 1 ? [`${what} was done ${done} times`] : []),
    ...(status === 'done' && done !== 1 ? [`${what} is called done, and was done ${done} times`] : []),
    ...(status === 'failed' && (done !== 0 || !refused)
      ? [`${what} is called failed, and was done ${done} times`]
      : []),
    ...(honoursKeys && keys.size > 1 ? [`${what} reached its provider under ${keys.size} keys`] : []),
    ...(!honoursKeys && blind > 0 ? [`${what} was sent again ${blind} times although its outcome was unknown`] : []),
  ]
}

export async function countOf({ cluster }: Pick<World, 'cluster'>, what: string): Promise<number> {
  const [row] = await cluster.sql<{ n: unknown }>(`select count(*) as n from ${what}`)
  return Number(row?.n)
}
