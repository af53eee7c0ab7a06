import { bytesText, countText } from '../../parts/format.ts'
import { useList } from '../../parts/list.tsx'
import { addressOf, navigate } from '../../parts/router.ts'
import { Empty, Failed, Loading } from '../../parts/states.tsx'
import { question } from '../api.ts'
import { CardBox, Filters } from '../page.tsx'

interface Quota {
  readonly quota: string
  readonly what: string
  readonly used: number
  readonly limit: number
  readonly setting: string
}

interface WorkspaceUse {
  readonly workspaceId: string
  readonly name: string
  /** The fullest first. */
  readonly quotas: readonly Quota[]
}

/** What each workspace uses of its quotas; the fullest of them is seen at a glance. */
export function QuotaList({ workspace }: { readonly workspace: string }) {
  const { rows, cursor, isLoading, failure, more, again, isAbsent } = useList<WorkspaceUse>(
    question('/quotas', { workspace }),
  )
  // A gateway has no workspaces.
  if (isAbsent) return null
  return (
    <CardBox title="Quotas" isFlush>
      <div class="toolbar">
        <Filters
          filters={[{ name: 'workspace', label: 'Workspace', value: workspace }]}
          change={(name, value) => navigate(addressOf(['data'], { [name]: value }), 'replace')}
        />
      </div>
      {failure === null ? null : <Failed message={failure} retry={rows.length === 0 ? again : more} />}
      {rows.length === 0 && failure === null ? isLoading ? <Loading /> : <Empty title="No such workspace" /> : null}
      {rows.map((row) => (
        <Workspace key={row.workspaceId} use={row} isOpen={rows.length === 1} />
      ))}
      {cursor === null ? null : (
        <div class="toolbar">
          <button type="button" disabled={isLoading} onClick={more}>
            More workspaces
          </button>
        </div>
      )}
    </CardBox>
  )
}

function Workspace({ use, isOpen }: { readonly use: WorkspaceUse; readonly isOpen: boolean }) {
  const { workspaceId, name, quotas } = use
  const [fullest] = quotas
  return (
    <details class="folded" open={isOpen}>
      <summary>
        <b>{name}</b>
        <code>{workspaceId}</code>
        {fullest === undefined ? null : (
          <span class={fullest.used >= fullest.limit ? 'bad' : 'soft'}>{useText(fullest)}</span>
        )}
      </summary>
      <ul class="quotas">
        {quotas.map((quota) => (
          <li key={quota.quota}>
            <span>{useText(quota)}</span>
            <progress max={quota.limit} value={Math.min(quota.used, quota.limit)} aria-label={useText(quota)} />
            <code>{quota.setting}</code>
          </li>
        ))}
      </ul>
    </details>
  )
}

function useText({ what, used, limit }: Quota): string {
  const [, ofWhat] = /^bytes of (.*)$/.exec(what) ?? []
  if (ofWhat !== undefined) return `${bytesText(used)} of ${bytesText(limit)} for ${ofWhat}`
  return `${countText(used)} of ${countText(limit)} ${what}`
}
