import type { ComponentChildren, JSX } from 'preact'
import { counted, countText } from '../model/numbers.ts'
import { type Check, troublesIn } from '../model/server/health.ts'
import {
  budgetText,
  historyText,
  lifetimeText,
  type RetentionWindow,
} from '../model/server/retention.ts'
import { humanDuration, localTime, utcTime } from '../model/times.ts'
import { usePage } from '../parts/page.ts'
import { PlainText } from '../parts/plain-text.tsx'
import { StateIcon } from '../parts/server/state-icon.tsx'
import type { PolledStatus } from '../parts/server/status.ts'

/** Everything known about the server, each item with what it means. */
export function StatusDetails({ status }: { readonly status: PolledStatus }): JSX.Element {
  const { checks, checksError, window, windowError, isWindowKnown, error, again } = status
  return (
    <div class="status-details">
      <section aria-label="Retention">
        <h2>
          Retention <PlainText text={usePlaceText()} />
        </h2>
        {windowError !== undefined && (
          <p>
            <PlainText text={windowError.message} />
          </p>
        )}
        {window === undefined && isWindowKnown && <p>No events are stored here.</p>}
        {!isWindowKnown && windowError === undefined && <p>Not known yet.</p>}
        {window !== undefined && <Kept window={window} />}
      </section>
      <section aria-label="Checks">
        <h2>Checks of the replica that responded</h2>
        {error !== undefined && (
          <p>
            <PlainText text={error.message} />
          </p>
        )}
        {checksError !== undefined && (
          <p>
            <PlainText text={checksError.message} />
          </p>
        )}
        <ul class="status-checks">
          {(checks ?? []).map((check) => (
            <CheckLine key={check.name} check={check} />
          ))}
        </ul>
        <button type="button" onClick={again}>
          Check now
        </button>
      </section>
    </div>
  )
}

function usePlaceText(): string {
  const { cluster, namespace } = usePage().query
  const clusterText =
    cluster === '' ? '' : cluster === '*' ? 'in all clusters' : `in the cluster ${cluster}`
  const namespaceText = namespace === '' ? '' : `of the namespace ${namespace}`
  return `${namespaceText} ${clusterText}`.trim()
}

function Kept({ window }: { readonly window: RetentionWindow }): JSX.Element {
  const { events, oldestMs, lifetimes, hiddenRules, budget, evicted, refused, history } = window
  return (
    <dl>
      <Row term="Events">{countText(events)}</Row>
      {oldestMs !== undefined && (
        <Row term="Oldest">
          last seen {localTime(oldestMs)} ({utcTime(oldestMs)})
        </Row>
      )}
      {history !== undefined && (
        <Row term="History">
          {historyText(history)}; events of the last {humanDuration(history.lagMs)} are not in it
          yet
        </Row>
      )}
      <Row term="Lifetimes">
        {lifetimes === undefined ? (
          'differ between the clusters: choose one'
        ) : (
          <ul>
            {lifetimes.map(({ selects, lifetime }, index) => (
              <li key={`${index} ${selects}`}>
                <PlainText text={selects || (lifetimes.length === 1 ? 'all events' : 'others')} />:{' '}
                {lifetimeText(lifetime)}
              </li>
            ))}
            {hiddenRules > 0 && <li>{counted(hiddenRules, 'further rule')}</li>}
          </ul>
        )}
      </Row>
      {budget !== undefined && <Row term="Budget">{budgetText(budget)}</Row>}
      <Row term="Evicted">
        {evicted === undefined
          ? 'not known'
          : `${counted(evicted, 'event')} deleted before the end of their lifetime, because of a budget`}
      </Row>
      {refused !== undefined && (
        <Row term="Refused">
          {counted(refused, 'write')} since this replica has started, beyond a limit or because etcd
          was full or away
        </Row>
      )}
    </dl>
  )
}

function Row({
  term,
  children,
}: {
  readonly term: string
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function CheckLine({ check }: { readonly check: Check }): JSX.Element {
  const [trouble] = troublesIn([check])
  return (
    <li>
      <StateIcon icon={check.isOk ? 'good' : 'bad'} />
      <span>
        {check.name}
        {trouble === undefined ? ' passes' : ` fails: ${trouble.title}. ${trouble.meaning}`}
      </span>
    </li>
  )
}
