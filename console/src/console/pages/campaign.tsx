import { useState } from 'preact/hooks'
import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { countText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { type Campaign, ProgressBar, useStanding } from '../campaign.tsx'
import { useNow } from '../live.ts'
import { CardBox, Facts, Loaded, Page } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { runTone } from '../states.ts'
import { RunDialog } from './run-actions.tsx'

/** One campaign, followed live. */
export function CampaignPage({ runId }: { readonly runId: string }) {
  const [asked, again] = useAsk<Campaign>(question(`/campaigns/${encodeURIComponent(runId)}`))
  return (
    <Loaded asked={asked} again={again}>
      {(campaign) => <Detail campaign={campaign} again={again} />}
    </Loaded>
  )
}

function Detail({ campaign, again }: { readonly campaign: Campaign; readonly again: () => void }) {
  const now = useNow()
  const mayAct = useMayAct()
  // It is followed again when something was done to it.
  const [turn, setTurn] = useState(0)
  const [open, setOpen] = useState<'cancel' | 'resume' | null>(null)
  const { standing, isLive } = useStanding(campaign.runId, turn)
  const { state, leads, progress } = standing ?? campaign
  const { campaignId, workspaceId, runId, sequenceId, version, concurrency, cron, timezone, error } = campaign
  const counts = Object.entries(progress).filter(([, count]) => count > 0)
  return (
    <Page
      title={
        <>
          <ShortId id={campaignId} /> <Badge tone={runTone(state)}>{state}</Badge>
        </>
      }
      about={
        <>
          <a href={addressOf(['campaigns'])}>Campaigns</a>
          {` / ${workspaceId}`}
        </>
      }
      actions={
        !mayAct ? undefined : state === 'failed' || state === 'cancelled' ? (
          <button type="button" onClick={() => setOpen('resume')}>
            Resume
          </button>
        ) : state === 'succeeded' ? undefined : (
          <button type="button" class="danger" onClick={() => setOpen('cancel')}>
            Cancel
          </button>
        )
      }
    >
      {error === null ? null : <p class="notice bad">{error}</p>}
      <CardBox title="Progress" end={isLive ? <Badge tone="good">live</Badge> : undefined}>
        <ProgressBar leads={leads} progress={progress} />
        <Facts
          facts={counts.map(([name, count]) => [
            name,
            <span key={name} data-state={name}>
              {countText(count)}
            </span>,
          ])}
        />
      </CardBox>
      <CardBox title="What it is">
        <Facts
          facts={[
            [
              'Run',
              <a key="run" href={addressOf(['runs', runId])}>
                {runId}
              </a>,
            ],
            ['Sequence', version === null ? sequenceId : `${sequenceId}, version ${version}`],
            ['At once', concurrency === null ? 'no limit' : `${concurrency} leads`],
            ['Again', cron === null ? null : `${cron} in ${timezone}`],
            [
              'Next',
              campaign.dueAt === null ? null : <Time key="next" atMs={Date.parse(campaign.dueAt)} nowMs={now} />,
            ],
            ['Began', <Time key="began" atMs={Date.parse(campaign.startedAt)} nowMs={now} />],
            [
              'Ended',
              campaign.endedAt === null ? null : <Time key="ended" atMs={Date.parse(campaign.endedAt)} nowMs={now} />,
            ],
          ]}
        />
      </CardBox>
      {open === null ? null : (
        <RunDialog
          how={open}
          what="campaign"
          runId={runId}
          done={() => {
            again()
            setTurn((before) => before + 1)
          }}
          close={() => setOpen(null)}
        />
      )}
    </Page>
  )
}
