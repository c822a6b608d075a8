// A client of Tilewire by generated stubs alone: the server's limits, a small call, a refused one, a streamed one.
//
//	example [ADDRESS]
//
// Every answer is compared with what is computed here; another one ends the program with exit code 1.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math"
	"math/rand"
	"os"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "tilewire/v1"
)

const mean, stddev = 0.5, 2.0

func main() {
	log.SetFlags(0)
	address := "localhost:50051"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	connection, err := grpc.Dial(address, grpc.WithInsecure()) // over a network: grpc.WithTransportCredentials
	check(err)
	defer connection.Close()
	// For all that follows, waiting for a busy server included.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	server, err := pb.NewDeviceClient(connection).Describe(ctx, &pb.DescribeRequest{})
	check(err)
	fmt.Printf("server %s on %s: messages to %d bytes, unary ones to %d\n",
		server.Version, server.Devices[0].Id, server.Limits.MaxMessageBytes, server.Limits.MaxUnaryBytes)
	kernels := pb.NewKernelsClient(connection)
	rmse(ctx, kernels)
	refused(ctx, kernels)
	gaussianPdf(ctx, kernels)
}

// rmse sends both arrays in one message, which Limits.MaxUnaryBytes allows; more goes by a stream.
func rmse(ctx context.Context, kernels pb.KernelsClient) {
	a, b := make([]float32, 20000), make([]float32, 20000)
	sum := 0.0
	for i := range a {
		a[i], b[i] = float32(i%1009)/8, float32(i%997)/16
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	request := &pb.RmseRequest{A: operand(a), B: operand(b)}
	var reply *pb.RmseResponse
	check(patiently(ctx, func(trailer grpc.CallOption) (err error) {
		reply, err = kernels.Rmse(ctx, request, trailer)
		return err
	}))
	got := math.Float64frombits(binary.LittleEndian.Uint64(reply.Result.Data)) // of all axes: one f64
	want := math.Sqrt(sum / float64(len(a)))
	fmt.Printf("rmse %v, computed here %v\n", got, want)
	if !(math.Abs(got-want) <= 1e-12*want) {
		log.Fatal("wrong: rmse")
	}
}

// refused shows what is in an error: a code and words for people, reason, field, value and allowed for programs.
func refused(ctx context.Context, kernels pb.KernelsClient) {
	request := &pb.GaussianPdfRequest{Op: &pb.GaussianOp{Mean: mean, Stddev: -1}, Input: operand([]float32{1})}
	err := patiently(ctx, func(trailer grpc.CallOption) error {
		_, err := kernels.GaussianPdf(ctx, request, trailer)
		return err
	})
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			fmt.Printf("refused: code %d, reason %s, field %s, value %s, allowed %s\n", status.Code(err), info.Reason,
				info.Metadata["field"], info.Metadata["value"], info.Metadata["allowed"])
			return
		}
	}
	log.Fatalf("wrong: a negative stddev was not refused with details: %v", err)
}

// gaussianPdf streams an array of several chunks and compares every value.
func gaussianPdf(ctx context.Context, kernels pb.KernelsClient) {
	x := make([]float32, 1000003)
	for i := range x {
		x[i] = float32(i)/(1<<17) - 4
	}
	var y []float32
	var chunks int
	check(patiently(ctx, func(trailer grpc.CallOption) error {
		answer, sent, err := execute(ctx, kernels, x, trailer)
		if err != nil {
			return err
		}
		if len(answer) != 4*len(x) {
			log.Fatal("wrong: length of the gaussian pdf")
		}
		y, chunks = make([]float32, len(x)), sent
		return binary.Read(bytes.NewReader(answer), binary.LittleEndian, y)
	}))
	worst, sum := 0.0, 0.0
	for i := range x {
		z := (float64(x[i]) - mean) / stddev
		want := math.Exp(-z*z/2) / (stddev * math.Sqrt(2*math.Pi))
		worst = math.Max(worst, math.Abs(float64(y[i])-want)/want)
		sum += float64(y[i])
	}
	fmt.Printf("gaussian pdf of %d values in %d chunks, sum %v, relative difference at most %.2g\n", len(x), chunks, sum, worst)
	if !(worst < 1.2e-7) { // of one ulp of an f32
		log.Fatal("wrong: gaussian pdf")
	}
}

// execute is one streamed call: Open, chunks once the server has Opened, and output, which may come while input is
// still sent. It returns the result's bytes and how many chunks were sent.
func execute(ctx context.Context, kernels pb.KernelsClient, x []float32, trailer grpc.CallOption) ([]byte, int, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream, and with it send, wherever this returns
	defer cancel()
	stream, err := kernels.Execute(ctx, trailer)
	if err != nil {
		return nil, 0, err
	}
	stream.Send(&pb.ExecuteRequest{Message: &pb.ExecuteRequest_Open{Open: &pb.Open{
		Operation: &pb.Open_GaussianPdf{GaussianPdf: &pb.GaussianOp{Mean: mean, Stddev: stddev}},
		Operands:  []*pb.ArraySpec{spec(x)},
	}}}) // where sending fails, Recv says why
	var answer []byte
	var chunks int
	for {
		reply, err := stream.Recv()
		if err == io.EOF {
			return answer, chunks, nil
		} else if err != nil {
			return nil, 0, err
		}
		switch message := reply.Message.(type) {
		case *pb.ExecuteResponse_Opened:
			size := chunkBytes(message.Opened)
			chunks = (4*len(x) + size - 1) / size
			go send(stream, little(x), size)
		case *pb.ExecuteResponse_Chunk: // they ascend
			answer = append(answer, message.Chunk.Data...)
		case *pb.ExecuteResponse_Result: // has up to 64 KiB itself, and then there were no chunks
			answer = append(answer, message.Result.Results[0].Data...)
		}
	}
}

// send sends the only operand in ascending chunks. The checksum may be left out.
func send(stream pb.Kernels_ExecuteClient, data []byte, size int) {
	for at := 0; at < len(data); at += size {
		end := at + size
		if end > len(data) {
			end = len(data)
		}
		checksum := crc32.Checksum(data[at:end], crc32.MakeTable(crc32.Castagnoli))
		chunk := &pb.Chunk{Operand: 0, Offset: uint64(at), Data: data[at:end], Crc32C: &checksum}
		if stream.Send(&pb.ExecuteRequest{Message: &pb.ExecuteRequest_Chunk{Chunk: chunk}}) != nil {
			return
		}
	}
	stream.CloseSend()
}

// chunkBytes is a block of the job, as the server has just said, but no more than 1 MiB, which is best, and than a message
// holds beside its other fields.
func chunkBytes(opened *pb.Opened) int {
	size := uint64(1 << 20)
	for _, most := range []uint64{opened.BlockBytes, opened.MaxMessageBytes - 64<<10} {
		if size > most {
			size = most
		}
	}
	return int(size)
}

// patiently repeats a call for as long as the server is BUSY and says after how many milliseconds to come again. Without
// that, as of a LIMIT, coming again is of no use.
func patiently(ctx context.Context, call func(trailer grpc.CallOption) error) error {
	for {
		var trailer metadata.MD
		err := call(grpc.Trailer(&trailer))
		pushback := trailer.Get("grpc-retry-pushback-ms")
		if status.Code(err) != codes.ResourceExhausted || len(pushback) != 1 {
			return err
		}
		pause, failed := strconv.Atoi(pushback[0])
		if failed != nil || pause < 0 {
			return err
		}
		fmt.Printf("busy: %s; again in %d ms\n", status.Convert(err).Message(), pause)
		pause += rand.Intn(pause/5 + 1) // so that those who were refused together do not come again together
		select {
		case <-time.After(time.Duration(pause) * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func spec(x []float32) *pb.ArraySpec {
	return &pb.ArraySpec{Dtype: pb.DType_DTYPE_F32, Shape: []int64{int64(len(x))}}
}

func operand(x []float32) *pb.Operand {
	return &pb.Operand{Spec: spec(x), Data: little(x)}
}

// little returns the array as it travels: little-endian, the last axis fastest.
func little(x []float32) []byte {
	var data bytes.Buffer
	binary.Write(&data, binary.LittleEndian, x)
	return data.Bytes()
}

func check(err error) {
	if err != nil {
		log.Fatalf("error: %v", err)
	}
}
