import { type LimitConfig, limitSettings } from '../config-limits.ts'

const shown = {
  retainMessagesDays: 'messages and attachments',
  retainLeadsDays: 'leads and conversations',
  retainUploadsDays: 'uploaded files',
  retainImportsDays: 'imports and references',
  retainChatDays: 'chat messages',
  retainAuditDays: 'audit of operators',
  retainBusinessAuditDays: 'audit of escalations',
} as const satisfies Partial<Record<keyof LimitConfig, string>>

/** What no setting changes, or one of the above with it. */
const fixed = [
  { what: 'digests of contents that were sent', kept: '15 minutes', setting: null },
  { what: 'unfinished uploads', kept: '24 hours', setting: null },
  { what: 'projects, and names of sequences', kept: 'as long as the workspace', setting: null },
  { what: 'versions of sequences', kept: 'the newest as long as the workspace, others 90 days', setting: null },
  { what: 'which runs a workspace has', kept: 'as long as the run, and a day', setting: null },
  { what: 'when hosts of webhooks were called', kept: '1 day', setting: null },
  { what: 'cases and escalations', kept: 'as long as the workspace', setting: null },
  { what: 'workspaces, API keys and rights', kept: 'until an operator removes them', setting: null },
] as const

/** Rooms and names of the chat outlive its messages. */
const CHAT_NAMES_DAYS = 7

/** How long the systems keep what, for operators. */
export function retentionRows(config: LimitConfig) {
  const changeable = (Object.entries(shown) as [keyof typeof shown, string][]).map(([name, what]) => ({
    what,
    kept: inDays(config[name]),
    setting: limitSettings[name].variable,
  }))
  const names = {
    what: 'rooms and names of the chat',
    kept: `${inDays(config.retainChatDays + CHAT_NAMES_DAYS)} after the last visit`,
    setting: limitSettings.retainChatDays.variable,
  }
  return [...changeable, names, ...fixed]
}

function inDays(days: number): string {
  return days === 1 ? '1 day' : `${days} days`
}
