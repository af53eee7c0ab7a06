import type { Run } from './run.ts'

export interface Command {
  /** What stands behind the name on the line of help. */
  readonly usage: string
  /** What it answers or does, in one line. */
  readonly about: string
  /** Loaded only when it is asked for, so that `--help` is quick and a command needs only what it needs. */
  load(): Promise<Run>
}

/** Every command, in the order of the help. */
export const commands: Readonly<Record<string, Command>> = {
  status: {
    usage: '',
    about: 'how things stand: states, rates, lag, what needs a person',
    load: async () => (await import('./records.ts')).statusCommand,
  },
  inspect: {
    usage: 'TENANT CALLER OPERATION KEY',
    about: 'one record: the ten questions of the runbook, answered',
    load: async () => (await import('./records.ts')).inspectCommand,
  },
  explain: {
    usage: 'KEY',
    about: 'the same for whatever has this key',
    load: async () => (await import('./records.ts')).explainCommand,
  },
  stale: {
    usage: '',
    about: 'leases past their end',
    load: async () => (await import('./records.ts')).staleCommand,
  },
  unknowns: {
    usage: '',
    about: 'everything whose outcome is unknown: records, messages, steps of runs',
    load: async () => (await import('./records.ts')).unknownsCommand,
  },
  top: {
    usage: '',
    about: 'the callers with the most attempts',
    load: async () => (await import('./records.ts')).topCommand,
  },
  conflicts: {
    usage: '',
    about: 'keys that were used again with another payload, or too early',
    load: async () => (await import('./records.ts')).conflictsCommand,
  },
  release: {
    usage: 'TENANT CALLER OPERATION KEY',
    about: 'frees a running claim',
    load: async () => (await import('./act.ts')).releaseCommand,
  },
  forget: {
    usage: 'TENANT CALLER OPERATION KEY',
    about: 'makes an identity new again',
    load: async () => (await import('./act.ts')).forgetCommand,
  },
  resolve: {
    usage: 'TENANT CALLER OPERATION KEY',
    about: 'ends an unknown outcome, also of a step: --succeeded, --failed or --rerun',
    load: async () => (await import('./act.ts')).resolveCommand,
  },
  outbox: {
    usage: '',
    about: 'lag, parked keys, dead letters and their redrive',
    load: async () => (await import('./events.ts')).outboxCommand,
  },
  inbox: {
    usage: '[CONSUMER]',
    about: 'consumers, dead letters and their redrive',
    load: async () => (await import('./events.ts')).inboxCommand,
  },
  sagas: {
    usage: '[SAGA [INSTANCE]]',
    about: 'instances, and what happened to them',
    load: async () => (await import('./events.ts')).sagasCommand,
  },
  runs: {
    usage: '[RUN_ID]',
    about: 'runs and their steps: cancel, resume',
    load: async () => (await import('./runs.ts')).runsCommand,
  },
  replay: {
    usage: 'RUN_ID… | --all',
    about: "what today's code makes of these runs: a diff, step by step; nothing is performed",
    load: async () => (await import('./replay.ts')).replayCommand,
  },
  sweep: {
    usage: '',
    about: 'removes what is past its end',
    load: async () => (await import('./upkeep.ts')).sweepCommand,
  },
  migrate: {
    usage: '',
    about: 'brings the tables up to date',
    load: async () => (await import('./upkeep.ts')).migrateCommand,
  },
  doctor: {
    usage: '[--server URL]',
    about: 'is the store configured safely?',
    load: async () => (await import('./upkeep.ts')).doctorCommand,
  },
  audit: {
    usage: '',
    about: 'what operators did',
    load: async () => (await import('./upkeep.ts')).auditCommand,
  },
  checklist: {
    usage: '',
    about: 'the design checklist of every declared route',
    load: async () => (await import('./upkeep.ts')).checklistCommand,
  },
  gateway: {
    usage: '--upstream URL',
    about: 'stands in front of an HTTP service and makes it safe to retry',
    load: async () => (await import('./gateway.ts')).gatewayCommand,
  },
}
