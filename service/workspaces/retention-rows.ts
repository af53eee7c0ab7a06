import { type LimitConfig, limitSettings } from '../config-limits.ts'

const shown = {
  retainMessagesDays: 'messages and attachments',
  retainLeadsDays: 'leads and conversations',
  retainUploadsDays: 'uploaded files',
  retainImportsDays: 'imports and references',
  retainChatDays: 'chat messages',
} as const satisfies Partial<Record<keyof LimitConfig, string>>

/** How long the systems keep what, for operators. */
export function retentionRows(config: LimitConfig) {
  return (Object.entries(shown) as [keyof typeof shown, string][]).map(([name, what]) => {
    const days = config[name]
    return { what, kept: days === 1 ? '1 day' : `${days} days`, setting: limitSettings[name].variable }
  })
}
