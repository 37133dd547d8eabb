/** Describes the state of a cluster's mirror. */
import { humanDuration } from '../times.ts'

export interface MirrorText {
  readonly icon: 'good' | 'bad' | 'busy' | 'waiting' | undefined
  readonly title: string
  readonly detail: string
}

interface Mirror {
  readonly state: string
  readonly lagMs: number | undefined
}

/** Only a stalled mirror is a problem: the others are up to date or catching up. */
export function mirrorText(mirror: Mirror | undefined): MirrorText {
  if (mirror === undefined) {
    return { icon: undefined, title: 'Not mirrored:', detail: 'its events are written here' }
  }
  const { state, lagMs } = mirror
  const lag = lagMs === undefined ? '' : `${humanDuration(lagMs)} behind`
  switch (state) {
    case 'Following':
      return { icon: 'good', title: state, detail: lagMs === 0 ? 'up to date' : lag }
    case 'Syncing':
      return { icon: 'busy', title: state, detail: lag || 'copying what the cluster has' }
    case 'Waiting':
      return { icon: 'waiting', title: state, detail: lag || 'no replica has reported yet' }
    case 'Stalled':
      return { icon: 'bad', title: state, detail: lag || 'its new events do not arrive' }
    default:
      return { icon: 'waiting', title: state || 'State unknown', detail: lag }
  }
}
