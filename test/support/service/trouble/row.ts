/** One thing that goes wrong, and what every interface must say of it. */
export interface Trouble {
  readonly system: (typeof systems)[number]
  readonly what: string
  /** Of the command line, without `onceonly`; the console answers it by the same row of the table. `ID` is its id. */
  readonly command: string
  /** What the command shows of it, as JSON; its id, when left out. */
  readonly shows?: string
  /** What it prints of it for people, where that is not what JSON shows. */
  readonly says?: string
  /** The page of the console that shows it, below its address; `FOUND` is where the search for its id leads. */
  readonly page: string | null
  /** What a reader sees of it there; what the command shows, when left out. */
  readonly sees?: string
  /** The card of the overview that is raised, whose link leads to the page; null where none is. */
  readonly card: string | null
  /** Where the card leads, when that is not the page. */
  readonly cardPage?: string
  /** The series that counts it, as Prometheus writes it; null where none does. */
  readonly metric: string | null
  /** What its value must be more than, for the alert to fire; 0, when left out. */
  readonly above?: number
  /** It is counted again and again, and the alert fires of that only. */
  readonly lasts?: true
  /** The rule that fires; null where no person is needed. */
  readonly alert: string | null
  /** How it ends. */
  readonly end: string
}

export const systems = ['messages', 'commands', 'events', 'imports', 'runs', 'chat', 'gateway', 'store'] as const
