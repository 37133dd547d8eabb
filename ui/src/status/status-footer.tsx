import '../styles/status.css'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { countText } from '../model/numbers.ts'
import { historyText, retentionText } from '../model/server/retention.ts'
import { type StateText, stateText } from '../model/server/status-text.ts'
import { humanDuration, localTime } from '../model/times.ts'
import { EventTime } from '../parts/event-time.tsx'
import { StateIcon } from '../parts/server/state-icon.tsx'
import { type PolledStatus, useServerStatus } from '../parts/server/status.ts'
import { StatusDetails } from './status-details.tsx'

/**
 * Summarises what the server can answer: how far back events go, what is missing, and its own
 * state.
 */
export function StatusFooter(): JSX.Element {
  const status = useServerStatus()
  const [isOpen, setIsOpen] = useState(false)
  const state = stateOf(status)
  return (
    <footer class={`status status-${state.level}`}>
      <div class="status-line">
        <State {...state} />
        <Figures status={status} />
        <button
          type="button"
          class="status-more"
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? 'Less' : 'More'}
        </button>
      </div>
      {isOpen && <StatusDetails status={status} />}
    </footer>
  )
}

/** Screen readers announce changes. */
function State({ level, title, meaning }: StateText): JSX.Element {
  return (
    <span class="status-state" role="status">
      <StateIcon icon={level === 'ok' ? 'good' : level === 'problem' ? 'bad' : 'waiting'} />
      <strong>{title}</strong> {meaning}
    </span>
  )
}

function Figures({ status }: { readonly status: PolledStatus }): JSX.Element {
  const { window, windowError, atMs, version } = status
  const nowMs = atMs ?? 0
  const history = window?.history
  return (
    <>
      {window !== undefined && <span class="status-figure">{retentionText(window)}</span>}
      {windowError?.code === 403 && (
        <span class="status-figure">You may not see how long events are kept here</span>
      )}
      {window?.oldestMs !== undefined && (
        <span class="status-figure">
          Oldest event {history !== undefined && 'in memory '}
          <EventTime ms={window.oldestMs} nowMs={nowMs} isInSentence />
        </span>
      )}
      {history !== undefined && (
        <span class="status-figure">
          History {historyText(history)}, {humanDuration(history.lagMs)} behind
        </span>
      )}
      {window?.evicted !== undefined && (
        <span class="status-figure">{countText(window.evicted)} evicted</span>
      )}
      {window?.refused !== undefined && (
        <span class="status-figure">{countText(window.refused)} refused</span>
      )}
      {version !== '' && <span class="status-figure">tidings {version}</span>}
      {atMs !== undefined && <span class="status-figure">as of {localTime(atMs).slice(11)}</span>}
    </>
  )
}

function stateOf({ checks, checksError, atMs, error }: PolledStatus): StateText {
  const known = { checks, checksCode: checksError?.code, atMs, isAway: error !== undefined }
  return stateText(known, (ms) => localTime(ms).slice(11))
}
