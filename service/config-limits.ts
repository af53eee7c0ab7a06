export interface NumberSetting {
  readonly variable: string
  readonly fallback: string
  readonly about: string
  read(text: string): { readonly value: number } | { readonly wrong: string }
}

const MIB = 1_024 ** 2
const GIB = 1_024 ** 3
/** A century: longer times would leave the range in which milliseconds are exact. */
const DAYS_MOST = 36_500
/** The record of a key answers with its message for a day, and must not outlive it. */
const MESSAGE_DAYS_LEAST = 2
/** What a region reads through when it looks for what a client lacks, and a page for what it shows. */
const CHAT_MESSAGES_MOST = 50_000
/** Ten years: as long as the law of most places wants anything to be kept. */
const AUDIT_DAYS = 3_650
/** What was done is looked into weeks later. */
const AUDIT_DAYS_LEAST = 30
/** A look costs a few short statements. */
const SWEEP_MS_LEAST = 100
const SWEEP_MS_MOST = 3_600_000

/**
 * How much a workspace may keep and have under way, and for how long what it stored is kept. The defaults leave room for
 * a busy workspace, and end before the disk of a small server is full.
 */
export const limitSettings = {
  quotaMessages: quota('MESSAGES', 1_000_000, 'messages that a workspace keeps'),
  quotaMessageBytes: quota('MESSAGE_BYTES', 2 * GIB, 'bytes of the texts and attachments of these messages'),
  quotaImports: quota('IMPORTS', 10_000, 'imports that a workspace keeps'),
  quotaUploadBytes: quota('UPLOAD_BYTES', 10 * GIB, 'bytes of uploaded files that a workspace keeps or is uploading'),
  quotaUploads: quota('UPLOADS', 20, 'files that a workspace uploads to one server at the same time'),
  quotaProjectBytes: quota('PROJECT_BYTES', 256 * MIB, 'bytes of the projects of a workspace'),
  quotaSequences: quota('SEQUENCES', 10_000, 'versions of its sequences that a workspace keeps'),
  quotaRuns: quota('RUNS', 100_000, 'runs of sequences that a workspace keeps'),
  quotaStreams: quota('STREAMS', 50, 'runs and campaigns that a workspace follows by events from one server'),
  quotaRooms: quota('ROOMS', 1_000, 'rooms of the chat that a workspace keeps'),
  quotaClients: quota('CLIENTS', 100_000, 'names of clients of the chat that a workspace keeps'),
  quotaConnections: quota('CONNECTIONS', 1_000, 'connections of the chat that a workspace has to one server'),
  retainMessagesDays: days(
    'MESSAGES',
    30,
    MESSAGE_DAYS_LEAST,
    'days that a message is kept after it was sent or has failed; an unknown one is kept until it is resolved',
  ),
  retainLeadsDays: days('LEADS', 365, 1, 'days that a lead and its conversation are kept after the last message to it'),
  retainUploadsDays: days('UPLOADS', 7, 1, 'days that the uploaded files of an import are kept after it has ended'),
  retainImportsDays: days('IMPORTS', 90, 1, 'days that an import and its references are kept after it has ended'),
  retainChatDays: days('CHAT', 30, 1, 'days that a message of the chat is kept'),
  retainChatMessages: whole('ONCEONLY_RETAIN_CHAT_MESSAGES', 5_000, {
    least: 1,
    most: CHAT_MESSAGES_MOST,
    about: 'messages that a room of the chat keeps at most, however young they are; a page loads all of them',
  }),
  retainAuditDays: days('AUDIT', AUDIT_DAYS, AUDIT_DAYS_LEAST, 'days that a line of the audit of operators is kept'),
  retainBusinessAuditDays: days(
    'BUSINESS_AUDIT',
    AUDIT_DAYS,
    AUDIT_DAYS_LEAST,
    'days that a line of the audit of escalations is kept',
  ),
  sweepEveryMs: whole('ONCEONLY_SWEEP_EVERY_MS', 60_000, {
    least: SWEEP_MS_LEAST,
    most: SWEEP_MS_MOST,
    about: 'how often what is past its retention is looked for',
  }),
} as const satisfies Readonly<Record<string, NumberSetting>>

export type LimitConfig = { readonly [Name in keyof typeof limitSettings]: number }

function quota(name: string, fallback: number, about: string): NumberSetting {
  return whole(`ONCEONLY_QUOTA_${name}`, fallback, { least: 1, most: Number.MAX_SAFE_INTEGER, about })
}

function days(name: string, fallback: number, least: number, about: string): NumberSetting {
  return whole(`ONCEONLY_RETAIN_${name}_DAYS`, fallback, { least, most: DAYS_MOST, about })
}

/** A whole number between two limits. */
export function whole(
  variable: string,
  fallback: number,
  { least, most, about }: { readonly least: number; readonly most: number; readonly about: string },
): NumberSetting {
  return {
    variable,
    fallback: String(fallback),
    about,
    read(text) {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
      return value >= least && value <= most ? { value } : { wrong: `is not a whole number from ${least} to ${most}` }
    },
  }
}
