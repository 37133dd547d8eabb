import type { ComponentChildren, JSX } from 'preact'
import { useRef } from 'preact/hooks'
import { ApiError, asApiError } from '../api/api-error.ts'
import type { ApiClient } from '../api/client.ts'
import { readiness, retentionWindow, serverVersion } from '../api/status.ts'
import { usePage } from '../parts/page.ts'
import { type ServerStatus, StatusContext } from '../parts/server/status.ts'
import { usePoll } from '../parts/use-poll.ts'

const POLL_MS = 30_000
/** Poll interval while something is wrong, so that its end shows soon. */
const TROUBLE_POLL_MS = 5_000

interface Place {
  readonly cluster: string
  readonly namespace: string
}

/** Values known from earlier polls. */
interface Known {
  version: string
  /** Cluster names, keyed by the cluster in the query. */
  readonly clusterNames: Map<string, string | undefined>
}

type StatusOfPlace = Omit<ServerStatus, 'isWindowKnown' | 'hasHistory'> & { readonly place: Place }

/** Polls the server's status, and provides it to the components that show it. */
export function StatusProvider({
  children,
}: {
  readonly children: ComponentChildren
}): JSX.Element {
  const { client, query } = usePage()
  const { cluster, namespace } = query
  const known = useRef<Known>({ version: '', clusterNames: new Map() })
  const { data, atMs, error, again } = usePoll<StatusOfPlace>(
    {
      load: (signal) =>
        loadStatus(client, { place: { cluster, namespace }, known: known.current }, signal),
      everyMs: (status) => (isInTrouble(status) ? TROUBLE_POLL_MS : POLL_MS),
    },
    [client, cluster, namespace],
  )
  const isOfPlace = data?.place.cluster === cluster && data.place.namespace === namespace
  const value = {
    checks: data?.checks,
    checksError: data?.checksError,
    version: data?.version ?? '',
    // Values of the previously shown namespace are dropped.
    window: isOfPlace ? data.window : undefined,
    windowError: isOfPlace ? data.windowError : undefined,
    isWindowKnown: isOfPlace && data.windowError === undefined,
    hasHistory: data?.window?.history !== undefined,
    ...{ atMs, error, again },
  }
  return <StatusContext.Provider value={value}>{children}</StatusContext.Provider>
}

/** Sends one request after the other. Rejects if the server does not respond. */
async function loadStatus(
  client: ApiClient,
  { place, known }: { readonly place: Place; readonly known: Known },
  signal: AbortSignal,
): Promise<StatusOfPlace> {
  const checks = await settled(readiness(client, place, signal))
  const clusterName = known.clusterNames.get(place.cluster)
  const found = await settled(retentionWindow(client, { place, clusterName }, signal))
  if (found.value !== undefined && place.namespace === '') {
    known.clusterNames.set(place.cluster, found.value.clusterName)
  }
  if (known.version === '') {
    known.version = (await settled(serverVersion(client, signal))).value ?? ''
  }
  return {
    place,
    checks: checks.value,
    checksError: checks.error,
    window: found.value?.window,
    windowError: found.error,
    version: known.version,
  }
}

/** Returns an error response as a value. Throws everything else. */
async function settled<Value>(
  work: Promise<Value>,
): Promise<{ readonly value?: Value; readonly error?: ApiError }> {
  try {
    return { value: await work }
  } catch (error) {
    if (error instanceof ApiError && error.code !== 0) return { error }
    throw asApiError(error)
  }
}

function isInTrouble({ checks, windowError }: StatusOfPlace): boolean {
  return checks?.some(({ isOk }) => !isOk) === true || (windowError?.code ?? 0) >= 500
}
