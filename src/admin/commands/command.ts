import type { Description } from '../../events/saga/describe.ts'
import type { ServedRoute } from '../../http/protocol/describe.ts'
import type { Replay } from '../../runs/replay.ts'
import type { ShivizEvent } from '../../streams/parts/shiviz.ts'
import type { Admin } from '../core/admin.ts'
import type { Actor } from '../core/audit.ts'
import type { OwnData } from '../core/erase.ts'
import type { Found } from '../core/find.ts'
import type { RetentionRow } from '../core/kept.ts'
import type { Arguments, Values } from './argument.ts'

/** A viewer reads, and previews actions; an operator also acts, and sees stored contents. */
export type Role = 'viewer' | 'operator'

/** The rooms of streams as the process that serves them knows them. */
export interface StreamRooms {
  /** Open sessions of this process. */
  sessions(): readonly { readonly region: string; readonly sessions: number }[]
  history(room: string, region: string): Promise<readonly ShivizEvent[] | null>
}

export type { RetentionRow } from '../core/kept.ts'

/** What an operator found out about a step of a run. */
export interface StepResolution {
  readonly kind: 'succeeded' | 'failed' | 'not_done'
  readonly result: unknown
  readonly error: string | null
}

/** What commands work on. Commands that need a part that is left out are not available. */
export interface CommandParts {
  /** What is read and acted on. */
  readonly admin: Admin
  /** The operations whose keys are contents. @default none */
  readonly guards?: readonly string[]
  /** Operations that the program runs for itself, so that operators can tell them from those of its users. @default none */
  readonly internals?: readonly string[]
  /** What the design checklist is made of. @default none */
  readonly routes?: () => readonly ServedRoute[]
  /** Descriptions of the sagas that this program runs. @default none */
  readonly sagas?: () => readonly Description[]
  /** The rooms of streams that this process serves. @default none */
  readonly rooms?: StreamRooms
  /** What the server keeps of tenants and persons beside the tables of the library. @default none */
  readonly own?: OwnData
  /** How long what is kept stays, by what it is: for the command `retention`. @default none */
  readonly retention?: () => readonly RetentionRow[]
  /** What the server has under an id beside the tables of the library. @default none */
  readonly find?: (id: string) => Promise<readonly Found[]>
  /** Of engines that know more about their runs than the rows do. @default none */
  readonly runs?: {
    replay(runId: string): Promise<Replay>
    resolve(runId: string, key: string, resolution: StepResolution): Promise<unknown>
  }
}

export interface Context extends CommandParts {
  readonly actor: Actor
  /** Called after each round of long work, with the share that is done where that is known. */
  progress(share?: number): void
}

/** Parts without which a command cannot be run. */
export type Need = 'events' | 'sagas' | 'runs' | 'streams' | 'audit' | 'guards' | 'routes' | 'rooms' | 'replay'

interface CommandBase<A extends Arguments> {
  /** One line of help. */
  readonly summary: string
  /** More help. */
  readonly details?: string
  readonly arguments: A
  /** Arguments that the command line takes without their names, in this order. */
  readonly words?: readonly (keyof A & string)[]
  readonly needs?: readonly Need[]
}

export interface ReadCommand<A extends Arguments = Arguments, Answer = unknown> extends CommandBase<A> {
  readonly kind: 'read'
  readonly role: Role
  /** Below the console's API; `:name` is an argument. */
  readonly path: string
  /** How long callers share one answer, in milliseconds: for questions that look at everything. */
  readonly sharedMs?: number
  read(context: Context, args: Values<A>): Promise<Answer>
  /** The answer without stored contents. */
  forViewer?(answer: Answer): unknown
}

/** What the audit remembers of an action besides its name. */
export type Target = Readonly<Record<string, unknown>>

export interface ActCommand<A extends Arguments = Arguments, Subject = unknown, Answer = unknown>
  extends CommandBase<A> {
  readonly kind: 'act'
  readonly role: 'operator'
  /** Only on the command line, whose user has the rights of the store. */
  readonly isLocal?: boolean
  /** What it would act on; it is also the preview. @throws CommandRefused where there is none */
  find?(context: Context, args: Values<A>): Promise<Subject>
  /** The preview without stored contents. Viewers have no preview of a command that leaves this out. */
  forViewer?(subject: Subject): unknown
  target(args: Values<A>, subject: Subject): Target
  /** Asked before it is done at a terminal; null where nothing has to be asked. */
  question(args: Values<A>, subject: Subject): string | null
  act(context: Context, args: Values<A>, subject: Subject): Promise<Answer>
}

export type Command = ReadCommand | ActCommand

type Draft<C> = Omit<C, 'kind' | 'role'>

export function read<A extends Arguments, Answer>(
  draft: Draft<ReadCommand<A, Answer>> & { readonly role?: Role },
): ReadCommand<A, Answer> {
  return { kind: 'read', role: 'viewer', ...draft }
}

export function act<A extends Arguments, Subject, Answer>(
  draft: Draft<ActCommand<A, Subject, Answer>>,
): ActCommand<A, Subject, Answer> {
  return { kind: 'act', role: 'operator', ...draft }
}

/** Without the members that are undefined, as optional properties want it. */
export function given<T extends object>(values: T): { [N in keyof T]?: Exclude<T[N], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as ReturnType<
    typeof given<T>
  >
}
