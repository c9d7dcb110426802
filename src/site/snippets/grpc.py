# pip install grpcio grpcio-tools googleapis-common-protos
# python -m grpc_tools.protoc -I marina-protos --python_out=. --grpc_python_out=. \
#   marina-protos/marina/gateway/v1/*.proto marina-protos/marina/options/v1/*.proto
import json
import os
import uuid

import grpc
from google.rpc import status_pb2
from marina.gateway.v1 import accounts_pb2, accounts_pb2_grpc, errors_pb2, orders_pb2, orders_pb2_grpc

# What the library may repeat by itself: calls that ended with UNAVAILABLE, and no other.
RETRIES = {
    "methodConfig": [
        {
            "name": [{"service": f"marina.gateway.v1.{name}"} for name in ("Accounts", "Orders", "Events")],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "1s",
                "maxBackoff": "10s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def code_of(error):
    """The code of /docs/errors, or None if the error does not come from Marina."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                own = errors_pb2.Error()
                if detail.Unpack(own):
                    return own.code
    return None


def connect(address):
    options = [("grpc.service_config", json.dumps(RETRIES))]
    if os.environ.get("MARINA_TLS") == "off":
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(), options)


with connect(os.environ["MARINA_GRPC"]) as channel:
    accounts, orders = accounts_pb2_grpc.AccountsStub(channel), orders_pb2_grpc.OrdersStub(channel)
    mine = [("authorization", f"Bearer {os.environ['MARINA_KEY']}")]
    first = accounts.ListAccounts(accounts_pb2.ListAccountsRequest(limit=1), metadata=mine, timeout=45).data[0]
    request = orders_pb2.CreateOrderRequest(
        account=first.account,
        symbol="ZENITHBANK",
        side=orders_pb2.ORDER_SIDE_BUY,
        quantity=100,
        type=orders_pb2.ORDER_TYPE_MARKET,
    )
    # Kept with the order in your database before the call: whatever happens, the same call may be made again.
    key = str(uuid.uuid4())
    try:
        order = orders.CreateOrder(request, metadata=[*mine, ("idempotency-key", key)], timeout=45)
        print(order.id, orders_pb2.OrderState.Name(order.state))
    except grpc.RpcError as error:
        print(error.code().name, code_of(error))
