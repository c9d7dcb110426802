// go_package names marina/gateway/v1: give your own with protoc's M options, or with buf's managed mode.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	gatewayv1 "example.com/you/gen/marina/gateway/v1"
)

// What the library may repeat by itself: calls that ended with UNAVAILABLE, and no other.
const retries = `{"methodConfig": [{
  "name": [{"service": "marina.gateway.v1.Accounts"}, {"service": "marina.gateway.v1.Orders"}],
  "retryPolicy": {"maxAttempts": 4, "initialBackoff": "1s", "maxBackoff": "10s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// The code of /docs/errors, or "" if the error does not come from Marina.
func codeOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if own, ok := detail.(*gatewayv1.Error); ok {
			return own.GetCode()
		}
	}
	return ""
}

func main() {
	channel := credentials.NewTLS(nil)
	if os.Getenv("MARINA_TLS") == "off" {
		channel = insecure.NewCredentials()
	}
	connection, err := grpc.NewClient(os.Getenv("MARINA_GRPC"),
		grpc.WithTransportCredentials(channel), grpc.WithDefaultServiceConfig(retries))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv("MARINA_KEY"))

	accounts, err := gatewayv1.NewAccountsClient(connection).ListAccounts(ctx, &gatewayv1.ListAccountsRequest{Limit: proto.Int32(1)})
	if err != nil {
		log.Fatal(status.Code(err), codeOf(err))
	}
	// Kept with the order in your database before the call: whatever happens, the same call may be made again.
	key := uuid.NewString()
	order, err := gatewayv1.NewOrdersClient(connection).CreateOrder(
		metadata.AppendToOutgoingContext(ctx, "idempotency-key", key),
		&gatewayv1.CreateOrderRequest{
			Account:  proto.String(accounts.GetData()[0].GetAccount()),
			Symbol:   proto.String("ZENITHBANK"),
			Quantity: proto.Int64(100),
			Side:     gatewayv1.OrderSide_ORDER_SIDE_BUY.Enum(),
			Type:     gatewayv1.OrderType_ORDER_TYPE_MARKET.Enum(),
		})
	if err != nil {
		log.Fatal(status.Code(err), codeOf(err))
	}
	fmt.Println(order.GetId(), order.GetState())
}
