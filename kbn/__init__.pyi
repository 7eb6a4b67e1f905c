from kbn.client.aio import Client as Client
from kbn.client.aio import connect as connect
from kbn.client.events import Delivery as Delivery
from kbn.client.handle import EventHandle as EventHandle
from kbn.client.stream import Stream as Stream
from kbn.client.sync import SyncClient as SyncClient
from kbn.client.sync import SyncStream as SyncStream
from kbn.client.sync import connect_sync as connect_sync
from kbn.errors import ClosedError as ClosedError
from kbn.errors import KbnError as KbnError
from kbn.errors import RefusedError as RefusedError
from kbn.errors import UnreachableError as UnreachableError
from kbn.language import attr as attr
from kbn.language import end as end
from kbn.language import everything as everything
from kbn.language import relation as relation
from kbn.language import start as start
from kbn.model import Bag as Bag
from kbn.model import Notification as Notification
from kbn.model import Subscription as Subscription

__version__: str
