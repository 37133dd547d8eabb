import type { Place } from '../../gate/target.ts'
import { accountOf } from '../../gate/user.ts'
import { laneOf } from '../../lib/run-queue.ts'
import { watchPlan } from '../request/list-plan.ts'
import { negotiateWatch } from '../request/negotiate.ts'
import { GZIP_HEADERS, takesGzip } from '../response/compress.ts'
import { warningHeader } from '../response/warnings.ts'
import { WatchGzip } from '../response/watch-gzip.ts'
import { type Endpoint, encodersFor, type ReadApi } from './event-api.ts'
import { WatchFeed } from './watch-feed.ts'
import { WatchFrameWriter } from './watch-frame-writer.ts'
import { windowHeader } from './window-header.ts'

/**
 * GET …/events?watch=true, and the older paths under …/watch/
 *
 * The response starts at once and has no natural end: a later failure is sent as a last ERROR
 * frame. Changes are read only when the client can receive them (backpressure).
 */
export function watchEvents(api: ReadApi): Endpoint<Place> {
  return async (request, target, caller) => {
    const encoders = encodersFor(api, target.cluster).watch(negotiateWatch(request))
    const plan = watchPlan(target, api)
    const lane = laneOf(request)
    const window = await windowHeader(api, target, lane)
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const writer = new WatchFrameWriter(encoders, plan.selector)
    const isGzipped = plan.hasInitialBookmark && takesGzip(request)
    const warning = warningHeader(plan.warnings)
    return {
      status: 200,
      headers: {
        'content-type': encoders.first.contentType,
        ...(warning && { warning }),
        ...(isGzipped && GZIP_HEADERS),
        ...window,
      },
      body: new WatchFeed(api, {
        plan,
        writer,
        gzip: isGzipped ? new WatchGzip() : undefined,
        request: request.signal,
        access: caller.recheck,
        user: accountOf(caller.sender ?? caller.user),
        lane,
        settle,
      }),
      longRunning: true,
      isWatchList: plan.hasInitialBookmark,
      settled,
    }
  }
}
