import { Badge } from '../../parts/badge.tsx'
import { ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { type Campaign, ProgressBar } from '../campaign.tsx'
import { useNow } from '../live.ts'
import { CardBox, Page } from '../page.tsx'
import { runTone } from '../states.ts'

/** Sequences for many leads: how far each of them is. */
export function CampaignsPage() {
  const now = useNow()
  return (
    <Page title="Campaigns" about="Sequences that are run for many leads. Open one to follow it live.">
      <CardBox isFlush>
        <ListView<Campaign>
          label="Campaigns"
          path={question('/campaigns')}
          keyOf={({ runId }) => runId}
          addressOf={({ runId }) => addressOf(['campaigns', runId])}
          empty="No campaign was started yet."
          columns={[
            { name: 'Campaign', width: 'minmax(0, 2fr)', show: ({ campaignId }) => <ShortId id={campaignId} /> },
            { name: 'Workspace', width: 'minmax(0, 1fr)', isMinor: true, show: ({ workspaceId }) => workspaceId },
            { name: 'State', width: '110px', show: ({ state }) => <Badge tone={runTone(state)}>{state}</Badge> },
            { name: 'Progress', width: 'minmax(0, 1.6fr)', show: (campaign) => <ProgressBar {...campaign} /> },
            { name: 'Again', width: '120px', isMinor: true, show: ({ cron }) => cron ?? '' },
            {
              name: 'Began',
              width: '110px',
              isMinor: true,
              show: ({ startedAt }) => <Time atMs={Date.parse(startedAt)} nowMs={now} />,
            },
          ]}
        />
      </CardBox>
    </Page>
  )
}
